// Checks that the files exist which a workflow copies or links before any step has run.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Reports sources without $parameters that do not exist. If the benchmark's first step uses the
// source, this is an error, because nothing can create the file before. If another step without
// `depend` uses it, this is a warning.
void check_sources(const Benchmark& benchmark, Diagnostics& diagnostics);

}  // namespace tally
