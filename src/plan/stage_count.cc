#include "src/plan/stage_count.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "src/model/stage.h"
#include "src/optim/gradient_reducer.h"
#include "src/optim/optimizer.h"
#include "src/parallel/collectives/rehearsal.h"
#include "src/plan/units.h"

namespace tally::train {
namespace {

// The run of a plan: --plan-zero is what the run's own flags would be.
Config planned_run(Config c, bool trains = true) {
  const PlanLayout l = layout_of(c);
  c.distributed_optimizer = trains && l.zero >= 1;
  c.shard_gradients = trains && l.zero >= 2;
  // The deferred update changes when an update happens, and allocates a few numbers.
  c.policy.fusions.deferred_update = false;
  return c;
}

// CUDA's context with the code of our kernels and the libraries', NCCL's buffers of each
// group of ranks that a process is in, and in them the 64 MiB in which copy engines stage gradients
// (src/parallel/nvlink/copy_engine.cc). Estimates, on the safe side; they depend on the driver, on
// NCCL's version and on the node.
double context_bytes(const PlanLayout& l, const CountedDevice& target) {
  if (!target.gpu) return 0;
  const int groups = (l.gpus() > 1) + (l.tensor > 1) + (l.data > 1) + (l.pipeline > 1);
  return gib + groups * 0.5 * gib;
}

// A group of processes, of which this is the first.
struct Group {
  explicit Group(int size) : ranks(make_rehearsal_communicator(0, size, &ledger)) {}
  double sent() const {
    double bytes = 0;
    for (const Messages& m : ledger.messages()) bytes += m.bytes_sent();
    return bytes;
  }

  RehearsalLedger ledger;
  std::unique_ptr<Communicator> ranks;
};

bool has_dropout(const Config& c) {
  return c.model.hidden_dropout > 0 || c.model.attention_dropout > 0 ||
         c.model.head_dropout().value_or(0) > 0;
}

// A micro batch that nothing reads: rows of all tokens, all of which may be masked.
Batch unread_batch(const Config& c) {
  static int32_t dummy = 0;
  const auto ids = [&](std::initializer_list<int64_t> shape) {
    return Tensor(&dummy, DType::i32, shape);
  };
  const int64_t b = c.micro_batch, t = c.sequence;
  const ModelConfig& m = c.model;
  Batch batch;
  batch.ids = ids({b, t});
  if (m.language_model()) {
    batch.labels[0] = ids({b, t});
    if (c.data.reset_position_ids) batch.positions = ids({b, t});
    if (c.data.reset_attention_mask) batch.cu_seqlens = ids({b * t + 1});
    return batch;
  }
  const bool predicts = m.task == Task::pretraining;
  if (m.token_types > 0) batch.token_types = ids({b, t});
  if (predicts) batch.rows = ids({b * t});
  batch.labels = {ids({predicts ? b * t : b}), m.label_heads() == 2 ? ids({b}) : Tensor()};
  batch.firsts = batch.lengths = ids({b});
  return batch;
}

// One process on the counting device, as Session and ForwardBackward make it.
class CountedProcess {
 public:
  CountedProcess(const Config& config, std::vector<ModelPart> parts, const CountedDevice& target);
  ~CountedProcess() {
    for (const auto& stage : stages_) {
      stage->set_gradient_hook({});
      stage->set_weight_hook({});
    }
  }
  CountedProcess(const CountedProcess&) = delete;
  CountedProcess& operator=(const CountedProcess&) = delete;

  // `sets`: of each part, those that are in flight at most.
  void make_sets(const std::vector<int64_t>& sets);
  void make_optimizer();
  // The passes of a micro batch through all parts.
  void forward(bool first);
  void backward(bool first, bool last);
  void finish_gradients();
  // With the gather that the next step's first forward pass does.
  void update();

  double number_of_parameters() const { return real(table_.count()); }
  // The memory by columns; the caller provides what else a stage's memory depends on.
  StageMemory memory() const;
  const CountedWork& work() const { return stream_.work(); }
  StepVolumes sent() const {
    return {tensor_.sent(), pipeline_.sent(), data_.sent(), embedding_.sent()};
  }

 private:
  void share_state();

  const Config config_;
  const std::vector<ModelPart> parts_;
  Group tensor_, data_, pipeline_, embedding_;
  CountingStream stream_;
  ParameterTable table_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::unique_ptr<Sharding> sharding_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<GradientReducer> reducer_;
  std::vector<std::unique_ptr<ActivationSet>> sets_;  // two of each part at most
  Batch batch_;
  StepState state_{};
  double scratch_ = 0, activations_ = 0, shares_ = 0, states_ = 0;  // bytes
};

CountedProcess::CountedProcess(const Config& config, std::vector<ModelPart> parts,
                               const CountedDevice& target)
    : config_(config),
      parts_(std::move(parts)),
      tensor_(config.tensor_parallel),
      data_(config.data_parallel),
      pipeline_(2),
      embedding_(2),
      stream_(target),
      batch_(unread_batch(config)) {
  for (const ModelPart& part : parts_) register_model(config_.model, part, &table_);
  table_.allocate(stream_, config_.compute_type(),
                  config_.distributed_optimizer ? sharded_memory(config_, config_.data_parallel)
                                                : TableMemory());
  const double before = stream_.held();
  for (const ModelPart& part : parts_)
    stages_.push_back(make_model(config_, part, table_, stream_, tensor_.ranks.get()));
  scratch_ = stream_.held() - before;
}

void CountedProcess::make_sets(const std::vector<int64_t>& sets) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    const double before = stream_.held();
    sets_.push_back(stages_[i]->make_activations());
    activations_ += real(sets[i]) * (stream_.held() - before);
  }
  // A stage with several sets computes again what one alone would still have.
  for (size_t i = 0; i < stages_.size(); ++i)
    if (sets[i] > 1) sets_.push_back(stages_[i]->make_activations());
}

void CountedProcess::make_optimizer() {
  std::vector<Stage*> stages;
  for (const auto& stage : stages_) stages.push_back(stage.get());
  const double before = stream_.held();
  if (config_.distributed_optimizer) share_state();
  shares_ = stream_.held() - before;
  optimizer_ = std::make_unique<Optimizer>(config_, table_, stream_, nullptr, sharding_.get());
  states_ = stream_.held() - before - shares_;
  if (config_.data_parallel == 1) return;
  Communicator& replicas = *data_.ranks;
  const int64_t elements = config_.gradient_bucket.value_or(usual_bucket(replicas));
  reducer_ = sharding_ ? std::make_unique<GradientReducer>(stream_, table_, *sharding_)
                       : std::make_unique<GradientReducer>(
                             ReductionGroups(replicas), stream_, table_,
                             gradient_buckets(table_, reported_parameters(stages), elements));
  for (const auto& stage : stages_) {
    stage->set_gradient_hook([this](int parameter) { reducer_->ready(parameter); });
    if (sharding_) stage->set_weight_hook([](int) {});  // update() gathers them all
  }
}

void CountedProcess::update() {
  const bool overwrites = config_.policy.fusions.overwrite;
  WeightGather* gather = overwrites ? optimizer_->gather() : nullptr;
  optimizer_->defer_gather(gather != nullptr);
  optimizer_->apply(!overwrites);
  if (!gather) return;
  gather->begin();
  gather->finish();
}

void CountedProcess::share_state() {
  std::vector<Stage*> stages;
  for (const auto& stage : stages_) stages.push_back(stage.get());
  Sharding::Options options;
  options.bucket_elements = config_.gradient_bucket.value_or(overlapped_bucket);
  options.shard_gradients = config_.shard_gradients;
  for (const Parameter& p : table_.all())
    if (p.reduction == Reduction::ends) options.alone = table_.get(p.name).id;
  sharding_ = std::make_unique<Sharding>(*data_.ranks, table_, stream_, reported_parameters(stages),
                                         options);
}

void CountedProcess::forward(bool first) {
  batch_.first = first && config_.policy.fusions.overwrite;
  const Pass pass{1, has_dropout(config_) ? DropoutSeed(1) : DropoutSeed(), &state_};
  for (size_t i = 0; i < stages_.size(); ++i) {
    stages_[i]->forward(batch_, pass, *sets_[i]);
    if (!parts_[i].last) pipeline_.ranks->start_send(stream_, sets_[i]->output, 1);
  }
}

void CountedProcess::backward(bool first, bool last) {
  for (size_t i = stages_.size(); i-- > 0;) {
    if (reducer_) reducer_->begin(first, last);
    stages_[i]->backward(*sets_[i]);
    if (reducer_) reducer_->end();
    if (!parts_[i].first) pipeline_.ranks->start_send(stream_, sets_[i]->gradient, 1);
  }
}

void CountedProcess::finish_gradients() {
  for (const FlatRange& range : table_.reduced(Reduction::shards))
    tensor_.ranks->all_reduce(stream_, table_.gradients(range));
  if (reducer_) reducer_->finish();
  for (const Parameter& p : table_.all())
    if (p.reduction == Reduction::ends)
      embedding_.ranks->all_reduce(stream_,
                                   sharding_ ? sharding_->alone() : table_.get(p.name).gradient);
}

StageMemory CountedProcess::memory() const {
  StageMemory m;
  m.parameters = number_of_parameters();
  m.weights = stream_.held("weights") + stream_.held("weights gathered in FP8");
  m.gradients = stream_.held("gradients") + shares_;
  m.optimizer = states_;
  m.activations = activations_;
  m.logits = stream_.held("logits");
  m.messages = stream_.held("all tokens of a part") + stream_.held("partial sums");
  const double attention = stream_.held("workspace");
  m.shared = scratch_ - m.logits - m.messages - attention;
  m.workspace =
      attention + stream_.held(counting::gemm_scratch) + stream_.held(counting::split_scratch);
  return m;
}

StepVolumes operator+(const StepVolumes& a, const StepVolumes& b) {
  return {a.tensor + b.tensor, a.pipeline + b.pipeline, a.data + b.data, a.embedding + b.embedding};
}
StepVolumes operator*(double times, const StepVolumes& v) {
  return {times * v.tensor, times * v.pipeline, times * v.data, times * v.embedding};
}

// A step's messages, and the work of its update. More micro batches than two repeat the first of
// them, after which ZeRO 2 reduces gradients and nothing else does.
void count_step(CountedProcess* process, int64_t micro_batches, StageCount* count) {
  process->forward(true);
  process->backward(true, micro_batches == 1);
  const StepVolumes first = process->sent();
  if (micro_batches > 1) {
    process->forward(false);
    process->backward(false, true);
  }
  process->finish_gradients();
  const CountedWork before = process->work();
  process->update();
  count->update = process->work() - before;
  count->sent = process->sent() + real(std::max<int64_t>(0, micro_batches - 2)) * first;
}

// The question to a stage.
struct Question {
  const Config config;  // planned_run()
  const int stage;
  const CountedDevice target;
  const bool trains;
  const bool step;  // its work and messages, too
};

// Counts with `layers` layers in each of the process's parts.
StageCount count_layers(const Question& q, int64_t layers) {
  const Config& c = q.config;
  const int stage = q.stage;
  const PlanLayout l = layout_of(c);
  MeshPosition position;
  position.stage = stage;
  std::vector<ModelPart> parts = parts_of(c, position);
  std::vector<int64_t> sets;
  StageCount count;
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].layers = layers;
    sets.push_back(sets_in_flight(l, stage, static_cast<int64_t>(i)));
  }
  CountedProcess process(c, std::move(parts), q.target);
  process.make_sets(sets);
  if (q.trains) process.make_optimizer();
  if (q.trains && q.step) count_step(&process, l.micro_batches, &count);
  count.memory = process.memory();
  count.memory.stage = stage;
  count.memory.layers = layers_of_stage(c);
  for (const int64_t n : sets) count.memory.sets += n;
  count.memory.context = context_bytes(l, q.target);
  return count;
}

// a + times (a - less), of all that grows with the layers.
StageCount extended(const StageCount& a, const StageCount& less, double times) {
  StageCount sum = a;
  for (double StageMemory::*bytes :
       {&StageMemory::parameters, &StageMemory::weights, &StageMemory::gradients,
        &StageMemory::optimizer, &StageMemory::activations, &StageMemory::shared,
        &StageMemory::logits, &StageMemory::workspace, &StageMemory::messages})
    sum.memory.*bytes += times * (a.memory.*bytes - less.memory.*bytes);
  sum.sent = a.sent + times * (a.sent + -1.0 * less.sent);
  sum.update = a.update + times * (a.update - less.update);
  return sum;
}

StageCount answer(const Question& q) {
  constexpr int64_t few = 16, enough = 4;
  const int64_t layers = layers_of_chunk(q.config);
  // An encoder is one part, whose last norm is that of its last block.
  if (layers <= few || !q.config.model.language_model()) return count_layers(q, layers);
  return extended(count_layers(q, enough), count_layers(q, enough - 1), real(layers - enough));
}

}  // namespace

CountedDevice target_of(const GpuKind& kind) {
  return {true, kind.memory, kind.capability > 0 ? kind.capability : 90};
}

StageCount count_every_layer(const Config& config, int stage, const CountedDevice& target) {
  return count_layers({planned_run(config), stage, target, true, true}, layers_of_chunk(config));
}

StageCount count_stage(const Config& config, int stage, const CountedDevice& target) {
  return answer({planned_run(config), stage, target, true, true});
}

std::vector<StageCount> count_stages(const Config& c, const CountedDevice& target) {
  std::vector<StageCount> stages;
  for (int i = 0; i < c.pipeline_parallel; ++i) stages.push_back(count_stage(c, i, target));
  return stages;
}

StageMemory stage_memory(const Config& c, int stage, const CountedDevice& target, bool trains) {
  // Only GEMMs in tf32x3 allocate in the passes.
  const bool step = target.gpu && c.precision == Precision::tf32x3;
  return answer({planned_run(c, trains), stage, target, trains, step}).memory;
}

StepVolumes step_volumes(const Config& c, int stage) {
  return count_stage(c, stage, {}).sent;
}

std::vector<StageMemory> all_stages(const Config& c, const CountedDevice& target) {
  std::vector<StageMemory> stages;
  for (int i = 0; i < c.pipeline_parallel; ++i) stages.push_back(stage_memory(c, i, target));
  return stages;
}

const StageMemory& worst_stage(const std::vector<StageMemory>& stages) {
  return *std::max_element(
      stages.begin(), stages.end(),
      [](const StageMemory& a, const StageMemory& b) { return a.total() < b.total(); });
}

namespace {

// A process that has the last layers of a model, or some in its middle.
std::unique_ptr<CountedProcess> part_of_model(const Config& c, const CountedDevice& target,
                                              int64_t layers, bool last) {
  ModelPart part;
  part.layers = layers;
  part.first = false;
  part.last = last;
  part.shards = c.tensor_parallel;
  part.sequence = layout_of(c).sequence;
  return std::make_unique<CountedProcess>(c, std::vector<ModelPart>{part}, target);
}

// The passes of a later micro batch, while others are in flight.
LayerCount count_passes(const Config& c, const CountedDevice& target, int64_t layers, bool last) {
  const auto made = part_of_model(c, target, layers, last);
  CountedProcess& process = *made;
  process.make_sets({2});
  LayerCount count;
  const CountedWork before = process.work();  // the set-up's
  process.forward(false);
  count.forward = {process.work() - before, process.sent().tensor};
  process.backward(false, false);
  count.backward = {process.work() - before - count.forward.work,
                    process.sent().tensor - count.forward.sent};
  return count;
}

LayerCount operator-(const LayerCount& a, const LayerCount& b) {
  return {{a.forward.work - b.forward.work, a.forward.sent - b.forward.sent},
          {a.backward.work - b.backward.work, a.backward.sent - b.backward.sent}};
}

}  // namespace

LayerCount count_layer(const Config& config, const CountedDevice& target) {
  const Config c = planned_run(config);
  return count_passes(c, target, 2, false) - count_passes(c, target, 1, false);
}

LayerCount count_head(const Config& config, const CountedDevice& target) {
  const Config c = planned_run(config);
  return count_passes(c, target, 1, true) - count_passes(c, target, 1, false);
}

double border_bytes(const Config& config) {
  const auto process = part_of_model(planned_run(config), {}, 1, false);
  process->make_sets({1});
  process->forward(false);
  return process->sent().pipeline;
}

}  // namespace tally::train
