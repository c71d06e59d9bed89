// Determines which workpackages count in a result, and which have no row in it.
#pragma once

#include <map>
#include <string>

#include "engine/results/rows/analyse.h"
#include "engine/results/rows/groups.h"

namespace tally {

// Notes in `records` the workpackages that failed before an analysed step could start, so that rows or
// repeats of it are missing.
void note_missing_rows(const Benchmark& benchmark, const Analyser& analyser, const Groups& groups,
                       Records& records);

}  // namespace tally
