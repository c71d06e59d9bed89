// The program `tally`.
#pragma once

#include "engine/workflow/step_kinds.h"

namespace tally {

// Parses the arguments, runs the command and returns the exit code. `kinds`: the kinds of steps
// that workflows may have.
int run_application(int argc, char** argv, const StepKinds& kinds);

}  // namespace tally
