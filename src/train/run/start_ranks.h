// Starts the ranks of this host (--nproc-per-node, --prefix-output).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "src/config/config.h"
#include "src/parallel/control/launch.h"
#include "src/parallel/control/rendezvous.h"

namespace tally::train {

// The reason why no rank of this host can be started, which is known before there is one.
// `processes`: of this host; `ranks`: of the run.
using FindFault = std::function<std::optional<Fault>(int processes, int ranks)>;

// The fault of a training or an evaluation: in its flags, in the host's limits of processes, or too little memory.
std::optional<Fault> find_fault(int processes, int ranks, const std::vector<char*>& argv,
                                Command command);

// Starts the ranks and watches them (supervise()), if `find_fault` has nothing against it. `argv`:
// the program and its arguments. Returns the exit code of the run. Throws LaunchError and what
// `find_fault` throws.
int start_ranks(const LaunchOptions& options, const Launch& launch, std::vector<char*> argv,
                const FindFault& find_fault);

}  // namespace tally::train
