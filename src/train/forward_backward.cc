#include "src/train/forward_backward.h"

#include <algorithm>

namespace tally::train {
namespace {

// splitmix64 (Steele, Lea & Flood 2014): neighbouring steps get unrelated seeds.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

bool has_dropout(const Config& c) {
  return c.model.hidden_dropout > 0 || c.model.attention_dropout > 0;
}

}  // namespace

bool records_graphs(const Config& config, const Stream& stream) {
  // The reference model allocates.
  return config.cuda_graph && !config.reference && stream.device().is_cuda();
}

ForwardBackward::ForwardBackward(const Config& config, Stream& stream, ParameterTable& table,
                                 Stage& stage, const Mesh& mesh, StepState* state, int places)
    : config_(config),
      stream_(stream),
      stage_(stage),
      mesh_(mesh),
      state_(state),
      graphs_(records_graphs(config, stream)),
      dropout_(has_dropout(config)),
      most_micro_batches_(config.micro_batches()),
      batch_(config, stream),
      activations_(stage.make_activations()),
      staging_(stream,
               static_cast<size_t>(places * most_micro_batches_) * sizeof(StepState::MicroBatch)),
      reducer_(mesh.data(), stream, table,
               gradient_buckets(table, stage.reported_parameters(), config.gradient_bucket)) {
  for (auto& graph : recorded_) graph = StepGraph::make(stream);
  if (mesh.data().size() > 1)
    stage.set_gradient_hook([this](int parameter) { reducer_.ready(parameter); });
}

ForwardBackward::~ForwardBackward() {
  stage_.set_gradient_hook({});
}

void ForwardBackward::run(BatchLoader* loader, int64_t consumed, int place) {
  const int64_t micro_batches = config_.micro_batches_at(consumed);
  const int replicas = mesh_.data().size();
  forget_graphs_of_other_weights(micro_batches);
  // Over all micro batches of all replicas.
  const double weight = 1.0 / (static_cast<double>(micro_batches) * static_cast<double>(replicas));
  for (int64_t k = 0; k < micro_batches; ++k) {
    load(stream_, loader, &batch_);
    batch_.first = k == 0 && config_.fusions.overwrite;
    const Pass pass = pass_of(consumed, k, weight, place);
    const bool reduces = k == micro_batches - 1 && replicas > 1;
    const auto work = [&] {
      if (reduces) reducer_.begin();
      stage_.forward(batch_, pass, *activations_);
      stage_.backward(*activations_);
      if (reduces) reducer_.finish();
    };
    if (graphs_) {
      recorded_[(batch_.first ? 1 : 0) + (reduces ? 2 : 0)]->run(work);
    } else {
      work();
    }
  }
}

// Drops recorded passes whose micro batch weight differs.
void ForwardBackward::forget_graphs_of_other_weights(int64_t micro_batches) {
  if (graphs_ && recorded_micro_batches_ != 0 && recorded_micro_batches_ != micro_batches) {
    stream_.synchronize();
    for (auto& graph : recorded_) graph = StepGraph::make(stream_);
  }
  recorded_micro_batches_ = micro_batches;
}

// A recorded pass reads what differs between micro batches from the step's state.
Pass ForwardBackward::pass_of(int64_t consumed, int64_t micro_batch, double weight, int place) {
  const uint64_t seed = dropout_seed(consumed, micro_batch);
  const bool counts = batch_.counted >= 0;
  if (!graphs_ || (seed == 0 && !counts)) return {weight, seed, state_};
  auto* staged = staging_.as<StepState::MicroBatch>() + place * most_micro_batches_ + micro_batch;
  staged->dropout_seed = seed;
  staged->loss_factor = batch_.counted > 0 ? weight / static_cast<double>(batch_.counted) : 0;
  stream_.copy(&state_->micro_batch, staged, sizeof *staged);
  return {weight, seed == 0 ? DropoutSeed() : DropoutSeed(state_, 0), state_, counts};
}

uint64_t ForwardBackward::dropout_seed(int64_t consumed, int64_t micro_batch) const {
  if (!dropout_) return 0;
  const auto replicas = static_cast<uint64_t>(mesh_.data().size());
  const auto replica = static_cast<uint64_t>(mesh_.place().replica);
  // Numbered as in one process, so that any number of replicas draws the same masks.
  const auto before = static_cast<uint64_t>(consumed / config_.micro_batch);
  const uint64_t number = before + static_cast<uint64_t>(micro_batch) * replicas + replica;
  return std::max<uint64_t>(1, mix(mix(config_.seed) ^ number));
}

}  // namespace tally::train
