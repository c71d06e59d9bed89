// Steps of kind: result come after the tables and have no workpackages.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Reports keys that need workpackages, sets whose values a step without them cannot have, and
// steps and analysers that wait for such a step.
void check_result_steps(const Benchmark& benchmark, Diagnostics& diagnostics);

}  // namespace tally
