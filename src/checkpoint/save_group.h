// The processes of a run that write a checkpoint or a model together.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/parallel/collectives/mesh.h"

namespace tally::train {

// One process alone by default. Where each replica is one process that has everything
// (!divided()), the first process writes alone and the others have no part in it.
struct SaveGroup {
  // Collective over all processes of the run: their texts, in the order of ranks.
  using Exchange = std::function<std::vector<std::string>(const std::string&)>;

  MeshShape shape;
  MeshPosition position;
  bool divided_optimizer = false;  // the replicas share the optimizer's state (ZeRO)
  Exchange exchange;               // needed where divided()

  // Whether no process has everything, so that all of them write.
  bool divided() const;
  bool first() const { return rank_of(shape, position) == 0; }
  // The first of several replicas with the same weights writes them.
  bool writes_model() const { return position.replica == 0; }
  // The files of the optimizer's state, and this process's; -1: it writes none.
  int parts() const;
  int part() const { return part_of(rank_of(shape, position)); }
  // The part of another process.
  int part_of(int rank) const;
};

// A failure that all processes of a group know of.
struct SharedFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Calls `work` and returns what it returned on every process of a divided group, or on this one.
// Collective where divided(): if `work` throws on one, this throws SharedFailure with the first
// rank's failure on all of them. The others do not know of what else it throws (CommunicationError,
// no memory for the exchange itself).
std::vector<std::string> work_together(const SaveGroup& group,
                                       const std::function<std::string()>& work);

}  // namespace tally::train
