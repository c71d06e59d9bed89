// Determines which workpackages count in a result, and which have no row in it.
#pragma once

#include <map>
#include <string>

#include "engine/results/analyse.h"
#include "engine/results/groups.h"

namespace tally {

// Whether `step` depends on `ancestor`, directly or through other steps.
bool depends_on(const Benchmark& benchmark, const std::string& step, const std::string& ancestor);

// Notes in `records` the workpackages that failed before an analysed step could start, so that rows or
// repeats of it are missing.
void note_missing_rows(const Benchmark& benchmark, const Analyser& analyser, const Groups& groups,
                       Records& records);

}  // namespace tally
