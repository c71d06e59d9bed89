// tally result FILE --logs PATH...: tables of jobs that a person submitted by hand.
#pragma once

#include "engine/cli/commands.h"

namespace tally {

// Expands the input file as a run would, takes the logs as those of the analysed step's
// workpackages, in their order, and shows the tables. Nothing is written: there is no run. Returns
// an exit code.
int show_log_results(const Invocation& invocation, const ResultArgs& args);

}  // namespace tally
