#include "src/parallel/collectives/mesh.h"

#include <fmt/format.h>

#include <algorithm>

namespace tally::train {

MeshPosition position_of(const MeshShape& shape, int rank) {
  return {rank % shape.tensor, rank / shape.tensor / shape.data, rank / shape.tensor % shape.data};
}

int rank_of(const MeshShape& shape, const MeshPosition& position) {
  return (position.stage * shape.data + position.replica) * shape.tensor + position.shard;
}

namespace {

bool share(MeshGroup group, const MeshShape& shape, const MeshPosition& a, const MeshPosition& b) {
  const auto at_an_end = [&](const MeshPosition& p) {
    return p.stage == 0 || p.stage + 1 == shape.pipeline;
  };
  switch (group) {
    case MeshGroup::tensor:
      return a.stage == b.stage && a.replica == b.replica;
    case MeshGroup::samples:
    case MeshGroup::replicas:
      return a.shard == b.shard && a.stage == b.stage;
    case MeshGroup::pipeline:
      return a.shard == b.shard && a.replica == b.replica;
    case MeshGroup::model:
      return a.replica == b.replica;
    case MeshGroup::embedding:
      return a.shard == b.shard && a.replica == b.replica && at_an_end(a) && at_an_end(b);
  }
  return false;
}

}  // namespace

std::vector<int> ranks_of(const MeshShape& shape, MeshGroup group, int rank) {
  const MeshPosition position = position_of(shape, rank);
  std::vector<int> ranks;
  for (int r = 0; r < shape.size(); ++r)
    if (share(group, shape, position, position_of(shape, r))) ranks.push_back(r);
  return ranks;
}

Mesh::Mesh(Communicator& world, const MeshShape& shape)
    : world_(world), shape_(shape), position_(position_of(shape, world.rank())) {
  if (world.size() != shape.size())
    throw CommunicationError(
        fmt::format("a mesh of {} x {} x {} (tensor, pipeline, data) has {} ranks, and the run has "
                    "{}",
                    shape.tensor, shape.pipeline, shape.data, shape.size(), world.size()));
  tensor_ = make(MeshGroup::tensor, "tensor");
  samples_ = replicas_ = make(MeshGroup::replicas, "data");
  pipeline_ = make(MeshGroup::pipeline, "pipeline");
  model_ = make(MeshGroup::model, "model");
  embedding_ = make(MeshGroup::embedding, "embedding");
}

// A group is named by its first rank; its members keep the order of the run. Libraries' groups cost
// memory on a GPU, so none is made for all ranks or for one alone.
Communicator* Mesh::make(MeshGroup group, const char* name) {
  const std::vector<int> ranks = ranks_of(shape_, group, world_.rank());
  if (static_cast<int>(ranks.size()) == world_.size()) return &world_;
  const bool ends_only = group == MeshGroup::embedding && shape_.pipeline > 1;
  if (ranks.size() == 1 && !ends_only) {
    made_.push_back(make_single_communicator());
  } else {
    made_.push_back(world_.subgroup(ranks, name));
  }
  return made_.back().get();
}

}  // namespace tally::train
