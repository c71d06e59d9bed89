// Starts the ranks of this host (--nproc-per-node, --prefix-output).
#pragma once

#include <vector>

#include "src/config/config.h"
#include "src/parallel/control/launch.h"

namespace tally::train {

// `command`: what the ranks do. Checks the flags, the host's limits of processes and its memory,
// and then starts the ranks and watches them (supervise()). `argv`: the program and its arguments.
// Returns the exit code of the run. Throws UsageError, HelpRequest and LaunchError.
int start_ranks(const LaunchOptions& options, const Launch& launch, std::vector<char*> argv,
                Command command);

}  // namespace tally::train
