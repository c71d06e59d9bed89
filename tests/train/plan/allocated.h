// What a process of a run really allocates on a CPU: its stages, their sets of activations, and what
// trains them, as Session makes them.
#pragma once

#include <memory>
#include <vector>

#include "src/model/stage.h"
#include "src/optim/optimizer.h"
#include "src/parallel/collectives/rehearsal.h"
#include "src/plan/layout.h"

namespace tally::train {

struct Allocated {
  double states = 0;   // of weights, gradients and the optimizer
  double scratch = 0;  // of stages and sets
  double all() const { return states + scratch; }
};

// The first process of a stage. Nothing is sent.
inline Allocated allocated_by(const Config& c, int stage, bool trains = true) {
  const auto stream = make_stream({DeviceKind::cpu, 0});
  const auto held = [&] { return static_cast<double>(stream->bytes_allocated()); };
  MeshPosition position;
  position.stage = stage;
  const std::vector<ModelPart> parts = parts_of(c, position);
  const PlanLayout layout = layout_of(c);
  RehearsalLedger ledger;
  const auto replicas = make_rehearsal_communicator(0, c.data_parallel, &ledger);
  const auto shards = make_rehearsal_communicator(0, c.tensor_parallel, &ledger);
  const bool shares = trains && layout.zero > 0;
  ParameterTable table;
  for (const ModelPart& part : parts) register_model(c.model, part, &table);
  Config sharing = c;
  sharing.shard_gradients = layout.zero > 1;
  table.allocate(*stream, c.compute_type(),
                 shares ? sharded_memory(sharing, c.data_parallel) : TableMemory());
  Allocated bytes;
  bytes.states = held();
  std::vector<std::unique_ptr<Stage>> stages;
  std::vector<Stage*> list;
  std::vector<std::unique_ptr<ActivationSet>> sets;
  for (size_t i = 0; i < parts.size(); ++i) {
    stages.push_back(make_model(c, parts[i], table, *stream, shards.get()));
    list.push_back(stages.back().get());
    const int64_t count = sets_in_flight(layout, stage, static_cast<int64_t>(i));
    for (int64_t k = 0; k < count; ++k) sets.push_back(stages.back()->make_activations());
  }
  bytes.scratch = held() - bytes.states;
  if (!trains) return bytes;
  std::unique_ptr<Sharding> sharding;
  if (shares)
    sharding =
        std::make_unique<Sharding>(*replicas, table, *stream, reported_parameters(list),
                                   Sharding::Options{overlapped_bucket, layout.zero > 1, -1});
  const Optimizer optimizer(c, table, *stream, nullptr, sharding.get());
  bytes.states = held() - bytes.scratch;
  return bytes;
}

}  // namespace tally::train
