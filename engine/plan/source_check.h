// Whether the files are there that a workflow copies or links before anything of it has run.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/workflow/workflow.h"

namespace tally {

// A source without $parameters that is not there is an error when the benchmark's first step uses
// it, for nothing can make it before, and a warning when another step without `depend` does.
void check_sources(const Benchmark& benchmark, Diagnostics& diagnostics);

}  // namespace tally
