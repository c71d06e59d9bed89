// The ranks of a run that work together in tensor, pipeline and data parallelism. One place turns a
// rank into its three coordinates and back.
//
// The order of ranks is Megatron-LM's (megatron/core/parallel_state.py): tensor parallel ranks are
// neighbours, so that they share a node, then come the data parallel ranks, then the stages of the
// pipeline:
//
//   rank = (stage * data + replica) * tensor + shard
#pragma once

#include <memory>
#include <vector>

#include "src/parallel/collectives/communicator.h"

namespace tally::train {

// The number of ranks that share each kind of work; their product is the number of ranks of the
// run.
struct MeshShape {
  int tensor = 1;    // shards of a layer
  int pipeline = 1;  // stages
  int data = 1;      // replicas of the whole model
  int size() const { return tensor * pipeline * data; }
  bool operator==(const MeshShape&) const = default;
};

// The coordinates of a rank.
struct MeshPosition {
  int shard = 0, stage = 0, replica = 0;
  bool operator==(const MeshPosition&) const = default;
};

// `rank` is at least 0 and less than shape.size().
MeshPosition position_of(const MeshShape& shape, int rank);
int rank_of(const MeshShape& shape, const MeshPosition& position);

// The ranks that share a kind of work, in the order in which a communicator numbers them.
enum class MeshGroup : uint8_t {
  tensor,     // the shards of one stage of one replica
  samples,    // ranks that divide the samples of a step
  replicas,   // ranks that have the same shard of the same stage, and add up their gradients
  pipeline,   // the stages of one shard of one replica
  model,      // shards and stages of one replica: what a gradient norm is summed over
  embedding,  // the first and the last stage of one shard of one replica, which share the embedding
};
// Empty for a rank that is in no such group: a stage between the first and the last has no part in
// `embedding`.
std::vector<int> ranks_of(const MeshShape& shape, MeshGroup group, int rank);

// This rank's communicators. They are made of `world`, which outlives the mesh.
class Mesh {
 public:
  // Collective over all ranks of `world`, whose number is shape.size().
  Mesh(Communicator& world, const MeshShape& shape);
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  const MeshShape& shape() const { return shape_; }
  const MeshPosition& position() const { return position_; }
  bool first_stage() const { return position_.stage == 0; }
  bool last_stage() const { return position_.stage + 1 == shape_.pipeline; }

  Communicator& world() const { return world_; }
  Communicator& tensor() const { return *tensor_; }  // rank: the shard
  // The ranks that divide the samples, and those that add up gradients: the same ranks in data
  // parallelism.
  Communicator& samples() const { return *samples_; }    // rank: the replica
  Communicator& replicas() const { return *replicas_; }  // rank: the replica
  Communicator& pipeline() const { return *pipeline_; }  // rank: the stage
  Communicator& model() const { return *model_; }        // rank: stage * tensor + shard
  // Null on a stage between the first and the last.
  Communicator* embedding() const { return embedding_; }

 private:
  Communicator* make(MeshGroup group, const char* name);

  Communicator& world_;
  MeshShape shape_;
  MeshPosition position_;
  std::vector<std::unique_ptr<Communicator>> made_;
  // Members of `made_`, or the world where a group has all its ranks.
  Communicator* tensor_ = nullptr;
  Communicator* samples_ = nullptr;
  Communicator* replicas_ = nullptr;
  Communicator* pipeline_ = nullptr;
  Communicator* model_ = nullptr;
  Communicator* embedding_ = nullptr;
};

}  // namespace tally::train
