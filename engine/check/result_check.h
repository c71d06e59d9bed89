// Checks of what needs numbers, of columns' statistics and of steps of kind: result. Internal to check/.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Reports a `statistic` of something that is not a number of each repeat, and an `uncertainty` that
// the statistic does not have.
void check_statistics(const Benchmark& benchmark, Diagnostics& diagnostics);

// Reports texts, as of a pattern without a type, where a key or a statistic needs numbers.
void check_numbers(const Benchmark& benchmark, Diagnostics& diagnostics);

// Steps of kind: result come after the tables and have no workpackages.
// Reports keys that need workpackages, sets whose values a step without them cannot have, and
// steps and analysers that wait for such a step.
void check_result_steps(const Benchmark& benchmark, Diagnostics& diagnostics);

}  // namespace tally
