// Slurm's lists of hosts and of tasks, expanded without asking Slurm.
#pragma once

#include <string>
#include <vector>

namespace tally::train {

// "node[01-03,07],gpu5" -> node01 node02 node03 node07 gpu5, in that order. As `scontrol show
// hostnames`: numbers keep the width of the first of their range; several brackets in a name
// multiply, the last one fastest ("r[1-2]n[1-2]" -> r1n1 r1n2 r2n1 r2n2); a name may go on after a
// bracket. Throws LaunchError that quotes the list for anything else, and for more than 65536
// hosts.
std::vector<std::string> expand_host_list(const std::string& list);

// SLURM_STEP_TASKS_PER_NODE: "2(x3),1" -> 2 2 2 1. Throws LaunchError.
std::vector<int> expand_tasks_per_node(const std::string& list);

}  // namespace tally::train
