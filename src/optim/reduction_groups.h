// The ranks over which the gradient of each weight is added up: those that have the same part of
// it.
#pragma once

#include <array>
#include <vector>

#include "src/nn/parameters.h"
#include "src/parallel/collectives/mesh.h"

namespace tally::train {

class ReductionGroups {
 public:
  // All weights have the same replicas.
  explicit ReductionGroups(Communicator& all);
  explicit ReductionGroups(const Mesh& mesh);
  // A group for each Reduction.
  explicit ReductionGroups(const std::array<Communicator*, reductions>& groups) : of_(groups) {}

  Communicator& of(const Parameter& p) const { return *of_[static_cast<size_t>(p.reduction)]; }
  // Each once.
  std::vector<Communicator*> all() const;

 private:
  std::array<Communicator*, reductions> of_{};
};

}  // namespace tally::train
