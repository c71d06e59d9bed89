// Keeps the names of a platform's sets apart from those of the user. Internal to check/.
#pragma once

#include <string>

#include "engine/workflow/workflow.h"

namespace tally {

// The platform's sets in the benchmark, those with this ending ("@slurm"), are of a file that does
// not know the user's names: their parameters are the platform's, and their texts name these, also
// where the user has others of the same name.
void give_to_platform(const std::string& ending, const StepKinds& kinds, Benchmark* benchmark);

}  // namespace tally
