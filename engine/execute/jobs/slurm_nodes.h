// The nodes of a Slurm cluster, and which of them can be tested.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

struct SlurmNode {
  std::string name;
  bool is_idle = false;
  std::string unusable;  // why it takes no jobs: "drained: bad DIMM"; empty: it does
};

// The names in Slurm's form: "node[1-3,7]" as node1, node2, node3, node7 (scontrol show hostnames).
Status expand_nodes(const std::string& list, std::vector<std::string>* names);
// The nodes of the cluster in Slurm's order, each once. `partition`: of it alone; empty: of all.
Status slurm_nodes(const std::string& partition, std::vector<SlurmNode>* nodes);

}  // namespace tally
