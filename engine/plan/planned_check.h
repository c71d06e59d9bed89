// What is wrong with a planned benchmark: values, resources and files that can be known before
// anything of it has run.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/plan/prepared.h"

namespace tally {

// A step none of whose workpackages can be made is an error; where only some cannot, a warning:
// the others run. Each mistake is told once, where it is written.
void check_planned(PreparedBenchmark& prepared, Diagnostics& diagnostics);

}  // namespace tally
