// Checks what columns ask of the repeats of a point.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Reports a `statistic` of something that is not a number of each repeat, and an `uncertainty` that
// the statistic does not have.
void check_statistics(const Benchmark& benchmark, Diagnostics& diagnostics);

}  // namespace tally
