#include "src/train/step/forward_backward.h"

#include <algorithm>

#include "src/device/split_mix.h"

namespace tally::train {
namespace {

bool has_dropout(const Config& c) {
  return c.model.hidden_dropout > 0 || c.model.attention_dropout > 0 ||
         c.model.head_dropout().value_or(0) > 0;
}

GradientReducer make_reducer(const Config& c, Stream& stream, const ParameterTable& table,
                             const std::vector<Stage*>& stages, const Mesh& mesh,
                             const Sharding* sharding) {
  if (sharding) return GradientReducer(stream, table, *sharding);
  const int64_t elements = c.gradient_bucket.value_or(usual_bucket(mesh.replicas()));
  return GradientReducer(ReductionGroups(mesh), stream, table,
                         gradient_buckets(table, reported_parameters(stages), elements));
}

}  // namespace

bool records_graphs(const Config& config, const Stream& stream) {
  // The reference model allocates. An encoder's micro batches differ in their sizes.
  return config.cuda_graph && !config.reference && config.model.language_model() &&
         stream.device().is_cuda();
}

ForwardBackward::ForwardBackward(const Config& config, Stream& stream, ParameterTable& table,
                                 const std::vector<Stage*>& stages, const Mesh& mesh,
                                 Optimizer& optimizer, int slots)
    : config_(config),
      stream_(stream),
      table_(table),
      mesh_(mesh),
      state_(optimizer.state()),
      sharding_(optimizer.sharding()),
      gather_(optimizer.gather()),
      graphs_(records_graphs(config, stream)),
      dropout_(has_dropout(config)),
      most_micro_batches_(config.micro_batches()),
      pipeline_(config, stream, mesh, stages),
      staging_(stream,
               static_cast<size_t>(slots * most_micro_batches_) * sizeof(StepState::MicroBatch)),
      counts_(stream, static_cast<size_t>(slots) * sizeof(StepState::counted)),
      labels_(stream, static_cast<size_t>(slots) * sizeof(StepState::labels)),
      reducer_(make_reducer(config, stream, table, stages, mesh, sharding_)) {
  for (const FlatRange& range : table.reduced(Reduction::shards))
    of_shards_.push_back(table.gradients(range));
  for (const Parameter& p : table.all())
    if (p.reduction == Reduction::ends)
      of_ends_.push_back(sharding_ ? sharding_->alone() : table.get(p.name).gradient);
  for (auto& graph : recorded_) graph = StepGraph::make(stream);
  if (mesh.replicas().size() == 1) return;
  for (Stage* stage : stages) {
    stage->set_gradient_hook([this](int parameter) { reducer_.ready(parameter); });
    if (gather_) stage->set_weight_hook([this](int parameter) { gather_->needs(parameter); });
  }
}

ForwardBackward::~ForwardBackward() {
  for (Stage* stage : pipeline_.stages()) {
    stage->set_gradient_hook({});
    stage->set_weight_hook({});
  }
}

void ForwardBackward::run(MicroBatches* loader, int64_t consumed, int slot) {
  if (config_.divides_by_labels() && pipeline_.has_head())
    count_labels(loader, config_.micro_batches_at(consumed), slot);
  double* labels = labels_.as<double>() + 2 * slot;
  labels[0] = 0;
  labels[1] = config_.model.label_heads() == 2 ? 0 : 1;
  if (pipeline_.divided()) {
    run_pipeline(loader, consumed, slot);
  } else {
    run_stage(loader, consumed, slot);
  }
  if (!config_.model.language_model() || config_.data.eod_mask_loss)  // a step may have none
    stream_.copy(state_->labels, labels, sizeof state_->labels);
}

// The number of labels is known before the first backward pass, so that gradients are as small as
// means are: sums that are divided later leave the range of fp16.
void ForwardBackward::count_labels(MicroBatches* loader, int64_t micro_batches, int slot) {
  const LabelCounts counts = loader->counted(micro_batches);
  double* staged = counts_.as<double>() + slot * static_cast<int64_t>(counts.size());
  std::copy(counts.begin(), counts.end(), staged);
  stream_.copy(state_->counted, staged, sizeof state_->counted);
  mesh_.samples().all_reduce(stream_, Tensor(state_->counted, DType::f64, {2}));
}

void ForwardBackward::run_stage(MicroBatches* loader, int64_t consumed, int slot) {
  const int64_t micro_batches = config_.micro_batches_at(consumed);
  Batch& batch = pipeline_.batch();
  ActivationSet& activations = pipeline_.activations();
  Stage& stage = *pipeline_.stages().front();
  forget_graphs_of_other_weights(micro_batches);
  for (int64_t k = 0; k < micro_batches; ++k) {
    loader->load(&batch);
    batch.first = k == 0 && config_.policy.fusions.overwrite;
    const Pass pass = pass_of(batch, consumed, k, slot);
    const bool last = k == micro_batches - 1 && mesh_.world().size() > 1;
    phase_ends(StepPhase::data);
    const auto work = [&] {
      if (gather_ && batch.first) gather_->begin();
      stage.forward(batch, pass, activations);
      if (gather_ && batch.first) gather_->finish();
      phase_ends(StepPhase::forward);
      reducer_.begin(k == 0, last);
      stage.backward(activations);
      reducer_.end();
      phase_ends(StepPhase::backward);
      if (!last) return;
      finish_gradients();
      phase_ends(StepPhase::gradient_reduction);
    };
    if (graphs_ && !eager_) {
      recorded_[(k == 0 ? 1 : 0) + (last ? 2 : 0)]->run(work);
    } else {
      work();
    }
  }
}

void ForwardBackward::run_pipeline(MicroBatches* loader, int64_t consumed, int slot) {
  const int64_t micro_batches = config_.micro_batches_at(consumed);
  forget_graphs_of_other_weights(micro_batches);
  Pipeline::Calls calls;
  calls.load = [&](int64_t number, Batch* batch) {
    loader->load(batch);
    batch->first = number == 0 && config_.policy.fusions.overwrite;
  };
  calls.pass = [&](int64_t number, const Batch& batch) {
    return pass_of(batch, consumed, number, slot);
  };
  calls.resume = [this, slot](int64_t number) { set_in_state(slot, number); };
  calls.before_backward = [this, micro_batches](int64_t number) {
    reducer_.begin(number == 0, number == micro_batches - 1);
  };
  calls.after_backward = [this] { reducer_.end(); };
  const bool gathers = gather_ && config_.policy.fusions.overwrite;
  if (gathers) gather_->begin();
  pipeline_.run(micro_batches, graphs_ && !eager_, calls);
  if (gathers) gather_->finish();
  finish_gradients();
}

// Adds up what several processes have of one gradient.
void ForwardBackward::finish_gradients() {
  for (const Tensor& gradients : of_shards_) mesh_.tensor().all_reduce(stream_, gradients);
  reducer_.finish();
  // The ends add last, because two processes that add equal numbers get equal bits, and sums over
  // replicas depend on where a gradient lies in its buffer.
  for (const Tensor& gradient : of_ends_) mesh_.embedding()->all_reduce(stream_, gradient);
}

// Drops recorded passes whose micro batch weight differs.
void ForwardBackward::forget_graphs_of_other_weights(int64_t micro_batches) {
  if (graphs_ && recorded_micro_batches_ != 0 && recorded_micro_batches_ != micro_batches) {
    stream_.synchronize();
    for (auto& graph : recorded_) graph = StepGraph::make(stream_);
    pipeline_.forget_recorded();
  }
  recorded_micro_batches_ = micro_batches;
}

// A recorded pass reads what differs between micro batches from the step's state.
Pass ForwardBackward::pass_of(const Batch& batch, int64_t consumed, int64_t micro_batch, int slot) {
  const bool divides = config_.divides_by_labels();
  // Chunks of one pipeline stage count the same labels again; it matters whether there are any.
  if (pipeline_.has_head())
    for (const size_t head : {0UL, 1UL})
      labels_.as<double>()[2 * static_cast<size_t>(slot) + head] +=
          static_cast<double>(std::max<int64_t>(batch.counted[head], 0));
  // The weight in a mean over all micro batches of all replicas. Labels of all of them need no
  // other weight.
  const double weight = divides ? 1
                                : 1.0 / (static_cast<double>(config_.micro_batches_at(consumed)) *
                                         static_cast<double>(mesh_.samples().size()));
  const uint64_t seed = dropout_seed(consumed, micro_batch);
  const bool counts = !divides && batch.counted[0] >= 0;
  const double* of_step = divides ? state_->counted : nullptr;
  staged_ = graphs_ && (seed != 0 || counts);
  if (!staged_) return {weight, seed, state_, of_step};
  auto* staged = staging_.as<StepState::MicroBatch>() + slot * most_micro_batches_ + micro_batch;
  staged->dropout_seed = seed;
  staged->counted = static_cast<double>(batch.counted[0]);
  set_in_state(slot, micro_batch);
  return {weight, seed == 0 ? DropoutSeed() : DropoutSeed(state_, 0), state_,
          counts ? &state_->micro_batch.counted : of_step};
}

// A pipeline's backward pass follows forward passes of other micro batches.
void ForwardBackward::set_in_state(int slot, int64_t micro_batch) {
  if (!staged_) return;
  const auto* staged =
      staging_.as<StepState::MicroBatch>() + slot * most_micro_batches_ + micro_batch;
  stream_.copy(&state_->micro_batch, staged, sizeof *staged);
}

uint64_t ForwardBackward::dropout_seed(int64_t consumed, int64_t micro_batch) const {
  if (!dropout_) return 0;
  const auto ranks = static_cast<uint64_t>(mesh_.samples().size());
  const auto rank = static_cast<uint64_t>(mesh_.samples().rank());
  // Micro batches are numbered as in one process, so that any number of replicas draws the same
  // masks.
  const auto before = static_cast<uint64_t>(consumed / config_.micro_batch);
  const uint64_t number = before + static_cast<uint64_t>(micro_batch) * ranks + rank;
  return std::max<uint64_t>(1, mix64(mix64(config_.seed) ^ number));
}

}  // namespace tally::train
