// Names of patterns. Private to check/.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Reports two patterns of one name that a step is searched for. Matches of both would be mixed in
// one column.
void check_pattern_names(const Benchmark& benchmark, const Analyser& analyser,
                         const Analyse& analyse, Diagnostics& diagnostics);

}  // namespace tally
