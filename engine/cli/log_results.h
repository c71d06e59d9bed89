// tally result FILE --logs PATH...: tables from jobs that a person submitted by hand.
#pragma once

#include "engine/cli/commands.h"

namespace tally {

// Expands the input file as a run would, assigns the logs to the analysed step's workpackages, in
// order, and shows the tables. Writes nothing, because there is no run. Returns an exit code.
int show_log_results(const Settings& settings, const ResultArgs& args);

}  // namespace tally
