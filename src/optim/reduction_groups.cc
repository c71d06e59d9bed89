#include "src/optim/reduction_groups.h"

#include <algorithm>

namespace tally::train {

ReductionGroups::ReductionGroups(Communicator& all) {
  of_.fill(&all);
}

ReductionGroups::ReductionGroups(const Mesh& mesh) : ReductionGroups(mesh.replicas()) {}

std::vector<Communicator*> ReductionGroups::all() const {
  std::vector<Communicator*> groups;
  for (Communicator* group : of_)
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  return groups;
}

}  // namespace tally::train
