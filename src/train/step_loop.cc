#include "src/train/step_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/measure/flops.h"
#include "src/measure/log_line.h"
#include "src/optim/schedule.h"
#include "src/train/advice.h"
#include "src/train/evaluation.h"

namespace tally::train {
namespace {

// Steps that the host may be ahead of the device: enough to keep it busy, few enough that ids in
// flight need little memory.
constexpr int run_ahead = 2;
constexpr int most_pending = 256;
// What a process adds to the others' when it is told to stop; up to a million time limits do not
// make a signal.
constexpr double says_time_limit = 1, says_signal = 1 << 20;

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

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

StepLoop::StepLoop(const LoopParts& parts, LoopHooks hooks, Record* record)
    : parts_(parts),
      hooks_(std::move(hooks)),
      record_(record),
      most_micro_batches_(parts.config.micro_batches()),
      dropout_(has_dropout(parts.config)),
      dynamic_scale_(parts.config.precision == Precision::f16 && parts.config.loss_scale <= 0),
      // The reference model allocates.
      graphs_(parts.config.cuda_graph && !parts.config.reference &&
              parts.stream.device().is_cuda()),
      ring_(static_cast<int>(std::min<int64_t>(parts.config.log_interval, most_pending))),
      batch_(parts.config, parts.stream),
      staging_(parts.stream, static_cast<size_t>(ring_) * sizeof(StepState)),
      read_back_(parts.stream, static_cast<size_t>(ring_) * sizeof(StepState)),
      micro_batch_staging_(parts.stream, static_cast<size_t>(ring_ * parts.config.micro_batches()) *
                                             sizeof(StepState::MicroBatch)),
      events_(StreamEvents::make(parts.stream, ring_ + 1)),
      micro_graphs_{StepGraph::make(parts.stream), StepGraph::make(parts.stream),
                    StepGraph::make(parts.stream), StepGraph::make(parts.stream)},
      update_graph_(StepGraph::make(parts.stream)),
      reducer_(parts.communicator, parts.stream, parts.table,
               gradient_buckets(parts.table, parts.stage.reported_parameters(),
                                parts.config.gradient_bucket)),
      said_(parts.stream, static_cast<size_t>(ring_) * sizeof(double)),
      heard_(parts.stream, static_cast<size_t>(ring_) * sizeof(double)),
      rates_(static_cast<size_t>(ring_)),
      batches_(static_cast<size_t>(ring_)) {
  Stream& s = parts_.stream;
  results_ = static_cast<StepState*>(
      s.allocate(static_cast<size_t>(ring_) * sizeof(StepState), "results of steps"));
  evaluation_ = static_cast<StepState*>(s.allocate(sizeof(StepState), "result of an evaluation"));
  stop_sum_ = static_cast<double*>(s.allocate(sizeof(double), "requests to stop"));
  if (parts_.communicator.size() > 1)
    parts_.stage.set_gradient_hook([this](int parameter) { reducer_.ready(parameter); });
  activations_ = parts_.stage.make_activations();
  DeferredUpdate* deferred = parts_.stage.deferred_update();
  // Gradients that are zeroed at a step's start cannot wait for the next one.
  if (!deferred || deferred->first() == deferred->last() || !parts_.config.fusions.overwrite)
    return;
  parts_.optimizer.defer(deferred->first(), deferred->last());
  deferred->set([&optimizer = parts_.optimizer](Stream& on, int64_t first, int64_t last, int sms) {
    optimizer.update_deferred(on, first, last, sms);
  });
}

StepLoop::~StepLoop() {
  Stream& s = parts_.stream;
  s.release(results_);
  s.release(evaluation_);
  s.release(stop_sum_);
  parts_.stage.set_gradient_hook({});
  if (DeferredUpdate* deferred = parts_.stage.deferred_update()) deferred->set({});
  parts_.optimizer.defer(0, 0);  // whoever goes on with it updates everything at once
}

template <typename Work>
void StepLoop::untimed(Work&& work) {
  const auto begin = Clock::now();
  work();
  untimed_ += Clock::now() - begin;
}

Ending StepLoop::run(int64_t iteration, int64_t consumed_samples) {
  const Config& c = parts_.config;
  iteration_ = iteration;
  consumed_ = consumed_samples;
  saved_ = iteration;
  loader_ = make_loader(c, parts_.communicator, parts_.stream, parts_.train, consumed_,
                        static_cast<int>(run_ahead * most_micro_batches_));
  told_ = hooks_.stop();
  Ending ending = agreed_ending();
  parts_.stream.synchronize();
  interval_start_ = Clock::now();
  while (ending.outcome == Outcome::completed && iteration_ < c.train_iterations) {
    enqueue_step();
    const bool logs = due(c.log_interval);
    const bool evaluates = parts_.validation && due(c.eval_interval);
    const bool saves = hooks_.save && due(c.save_interval);
    const int64_t epoch = c.epochs > 0 ? consumed_ / c.epoch_samples : 0;
    const bool last = iteration_ == c.train_iterations;
    const bool epoch_ends =
        c.epochs > 0 && (last || epoch > (consumed_ - c.global_batch) / c.epoch_samples);
    const bool checks = due(c.weight_check_interval);
    if (evaluates || saves || checks || epoch_ends) parts_.optimizer.complete();
    if (logs || evaluates || saves || checks || epoch_ends || pending_ == ring_) flush();
    if (logs) log();
    if (evaluates) untimed([&] { evaluate(fmt::format("iteration {}", iteration_)); });
    if (epoch_ends) untimed([&] { end_epoch(last ? c.epochs : epoch); });
    if (checks) untimed([&] { hooks_.check_weights(); });
    if (saves) untimed([&] { save(); });
    told_ = hooks_.stop();
    ending = agreed_ending();
    if (due(c.exit_interval)) break;
  }
  parts_.optimizer.complete();
  flush();
  const bool finished = iteration_ == c.train_iterations && iteration_ > iteration;
  if (finished && parts_.validation && evaluated_ != iteration_)
    evaluate("the end of training for val data");
  if (finished && parts_.test) {
    const double loss = evaluation_loss(parts_.test, 0);
    record_->evaluations.push_back({iteration_, loss, "test"});
    hooks_.print(format_validation("the end of training for test data", loss));
  }
  if (hooks_.save && saved_ != iteration_) save();
  return ending;
}

// The global batch of the step to come. Recorded graphs carry the weight of a micro batch, which
// depends on it.
void StepLoop::take_global_batch() {
  const int64_t batch = parts_.config.global_batch_at(consumed_);
  if (batch == global_batch_) return;
  if (graphs_ && global_batch_ != 0) {
    flush();
    for (auto& graph : micro_graphs_) graph = StepGraph::make(parts_.stream);
  }
  global_batch_ = batch;
  micro_batches_ = parts_.config.micro_batches_at(consumed_);
}

void StepLoop::enqueue_step() {
  const Config& c = parts_.config;
  take_global_batch();
  if (pending_ == 0) events_->record(0);
  const int slot = pending_;
  // Mark k + 1 ends step k: wait for the end of the step `run_ahead` before this one.
  if (slot >= run_ahead) {
    events_->wait(slot - run_ahead + 1);
    hear(slot - run_ahead);
  }
  rates_[static_cast<size_t>(slot)] = learning_rate(c.optimizer, consumed_);
  batches_[static_cast<size_t>(slot)] = global_batch_;
  parts_.optimizer.set_weight_decay(weight_decay(c.optimizer, consumed_));
  parts_.optimizer.begin_step(rates_[static_cast<size_t>(slot)], staging_.as<StepState>() + slot);
  enqueue_micro_batches(slot);
  say(slot);
  const auto update = [&] {
    share_results();
    parts_.optimizer.apply(!c.fusions.overwrite);
  };
  if (graphs_) {
    update_graph_->run(update);
  } else {
    update();
  }
  finish_enqueued(slot);
  ++pending_;
  ++iteration_;
  consumed_ += global_batch_;
}

void StepLoop::say(int slot) {
  if (parts_.communicator.size() == 1) return;
  double& said = said_.as<double>()[slot];
  said = 0;
  if (told_.outcome == Outcome::time_limit) said = says_time_limit;
  if (told_.outcome == Outcome::signalled) said = says_signal;
  parts_.stream.copy(stop_sum_, &said, sizeof said);
}

// Every process has its share of the loss; the gradients are added up already.
void StepLoop::share_results() {
  Communicator& all = parts_.communicator;
  if (all.size() == 1) return;
  all.begin_group();
  all.all_reduce(parts_.stream, Tensor(&parts_.optimizer.state()->loss_sum, DType::f64, {1}));
  all.all_reduce(parts_.stream, Tensor(stop_sum_, DType::f64, {1}));
  all.end_group();
}

// One process stops when it is told to; several when all of them know.
Ending StepLoop::agreed_ending() const {
  if (parts_.communicator.size() == 1) return told_;
  if (told_to_stop_ == 0) return {};
  if (told_.outcome != Outcome::completed) return told_;
  if (told_to_stop_ >= says_signal)
    return {Outcome::signalled, "another process of the run received a signal to stop"};
  return {Outcome::time_limit, fmt::format("--exit-duration-in-mins {} is over in another process",
                                           parts_.config.exit_duration_minutes)};
}

// The seed of a micro batch of the step to come.
uint64_t StepLoop::dropout_seed(int64_t micro_batch) const {
  if (!dropout_) return 0;
  const auto ranks = static_cast<uint64_t>(parts_.communicator.size());
  const auto rank = static_cast<uint64_t>(parts_.communicator.rank());
  // Numbered as one process would take them, so that it would draw the same.
  const auto before = static_cast<uint64_t>(consumed_ / parts_.config.micro_batch);
  const uint64_t place = before + static_cast<uint64_t>(micro_batch) * ranks + rank;
  return std::max<uint64_t>(1, mix(mix(parts_.config.seed) ^ place));
}

// A recorded step reads from the step's state what differs from one micro batch to the next.
Pass StepLoop::pass_of(int slot, int64_t micro_batch, double weight) {
  const uint64_t seed = dropout_seed(micro_batch);
  StepState* state = parts_.optimizer.state();
  const bool counts = batch_.counted >= 0;
  if (!graphs_ || (seed == 0 && !counts)) return {weight, seed, state};
  auto* staged =
      micro_batch_staging_.as<StepState::MicroBatch>() + slot * most_micro_batches_ + micro_batch;
  staged->dropout_seed = seed;
  staged->loss_factor = batch_.counted > 0 ? weight / static_cast<double>(batch_.counted) : 0;
  parts_.stream.copy(&state->micro_batch, staged, sizeof *staged);
  return {weight, seed == 0 ? DropoutSeed() : DropoutSeed(state, 0), state, counts};
}

void StepLoop::enqueue_micro_batches(int slot) {
  const int ranks = parts_.communicator.size();
  // Of all micro batches of all processes.
  const double weight = 1.0 / (static_cast<double>(micro_batches_) * static_cast<double>(ranks));
  for (int64_t k = 0; k < micro_batches_; ++k) {
    load(parts_.stream, loader_.get(), &batch_);
    batch_.first = k == 0 && parts_.config.fusions.overwrite;
    const bool last = k == micro_batches_ - 1 && ranks > 1;
    const Pass pass = pass_of(slot, k, weight);
    const auto work = [&] {
      if (last) reducer_.begin();
      parts_.stage.forward(batch_, pass, *activations_);
      parts_.stage.backward(*activations_);
      if (last) reducer_.finish();
    };
    if (graphs_) {
      micro_graphs_[(batch_.first ? 1 : 0) + (last ? 2 : 0)]->run(work);
    } else {
      work();
    }
  }
}

void StepLoop::finish_enqueued(int slot) {
  parts_.stream.copy(results_ + slot, parts_.optimizer.state(), sizeof(StepState));
  if (parts_.communicator.size() > 1)
    parts_.stream.copy(heard_.as<double>() + slot, stop_sum_, sizeof(double));
  events_->record(slot + 1);
  // A constant scale: an update that was left out is found at the next flush and ends the run.
  parts_.optimizer.finish_enqueued();
}

// Waits for the device and takes the results of the pending steps.
void StepLoop::flush() {
  if (pending_ == 0) return;
  StepState* states = read_back_.as<StepState>();
  parts_.stream.copy(states, results_, static_cast<size_t>(pending_) * sizeof(StepState));
  parts_.stream.synchronize();
  const int count = pending_;
  pending_ = 0;
  for (int k = std::max(0, count - run_ahead); k < count; ++k) hear(k);
  parts_.optimizer.learn(states[count - 1]);
  const int64_t first = iteration_ - count;
  for (int k = 0; k < count; ++k) {
    Step step;
    step.iteration = first + k + 1;
    step.seconds = events_->seconds(k, k + 1);
    step.loss = states[k].loss_sum;
    step.grad_norm = states[k].grad_norm;
    step.learning_rate = rates_[static_cast<size_t>(k)];
    step.loss_scale = states[k].step_loss_scale;
    step.skipped = states[k].found_inf != 0;
    step.samples = batches_[static_cast<size_t>(k)];
    record_->steps.push_back(step);
    ++tally_.steps;
    tally_.samples += step.samples;
    if (step.skipped) {
      ++tally_.skipped;
      if (!std::isfinite(step.loss)) ++tally_.nan;
    } else {
      tally_.loss_sum += step.loss;
      epoch_loss_ += step.loss;
      ++epoch_steps_;
    }
    tally_.last = step;
    check(step);
  }
}

void StepLoop::check(const Step& step) const {
  const Config& c = parts_.config;
  const bool loss_ok = std::isfinite(step.loss);
  if (loss_ok && !step.skipped) return;
  // fp16: an overflow is answered by a smaller scale, until there is none.
  if (dynamic_scale_ && step.skipped && (loss_ok || step.loss_scale > c.min_loss_scale)) return;
  throw CheckFailed(fmt::format(
      "iteration {}: the {} is not finite (loss {}, gradient norm {}, learning rate {:.3E}): {}",
      step.iteration, loss_ok ? "gradient" : "loss", step.loss, step.grad_norm, step.learning_rate,
      advice_for_divergence(c)));
}

void StepLoop::log() {
  const Config& c = parts_.config;
  const auto now = Clock::now();
  const double elapsed = seconds(now - interval_start_ - untimed_);
  LogLine line;
  line.iteration = iteration_;
  line.iterations = c.train_iterations;
  line.consumed_samples = consumed_;
  line.seconds_per_iteration = elapsed / static_cast<double>(tally_.steps);
  line.learning_rate = learning_rate(c.optimizer, consumed_);
  line.global_batch = tally_.last.samples;
  const int64_t good = tally_.steps - tally_.skipped;
  line.loss = good > 0 ? tally_.loss_sum / static_cast<double>(good) : 0;
  line.loss_scale = parts_.optimizer.scaler().scale();
  line.grad_norm = tally_.last.skipped ? -1 : tally_.last.grad_norm;
  line.skipped = tally_.skipped;
  line.nan = tally_.nan;
  const double batch = static_cast<double>(tally_.samples) / static_cast<double>(tally_.steps);
  const double share = batch / static_cast<double>(c.global_batch);
  line.samples_per_second = batch / line.seconds_per_iteration;
  line.tflops =
      share * megatron_flops_per_iteration(c) / line.seconds_per_iteration / c.world_size / 1e12;
  line.throughput = batch * static_cast<double>(c.sequence) *
                    megatron_flops_per_token(c.model, c.sequence) / line.seconds_per_iteration /
                    c.world_size / 1e12;
  hooks_.print(c.log_format == LogFormat::megatron
                   ? format_megatron_log_line(line, c.log_throughput, log_time())
                   : format_log_line(line));
  record_->intervals.push_back(
      {iteration_, tally_.steps, line.seconds_per_iteration, tally_.samples});
  tally_ = {};
  untimed_ = {};
  interval_start_ = now;
}

// Reports a pass over the training blocks, with the loss on the validation blocks where there are
// any.
void StepLoop::end_epoch(int64_t epoch) {
  Epoch done;
  done.epoch = epoch;
  done.iteration = iteration_;
  done.loss = epoch_steps_ > 0 ? epoch_loss_ / static_cast<double>(epoch_steps_) : std::nan("");
  std::string line = fmt::format(" epoch {:4d}/{:4d} | iteration {:8d} | lm loss: {:.6E} |", epoch,
                                 parts_.config.epochs, iteration_, done.loss);
  if (parts_.validation) {
    if (evaluated_ != iteration_) evaluate(fmt::format("the end of epoch {}", epoch));
    done.validation_loss = record_->evaluations.back().loss;
    line += fmt::format(" validation loss: {:.6E} | validation PPL: {:.6E} |",
                        *done.validation_loss, std::exp(std::min(20.0, *done.validation_loss)));
  }
  hooks_.print(line);
  record_->epochs.push_back(done);
  epoch_loss_ = 0;
  epoch_steps_ = 0;
}

void StepLoop::evaluate(const std::string& where) {
  const Config& c = parts_.config;
  // Each evaluation takes the next samples, so that a resumed run takes those that the first would
  // have taken.
  const int64_t before = c.eval_interval > 0 ? (iteration_ - 1) / c.eval_interval : 0;
  const double loss =
      evaluation_loss(parts_.validation, before * c.eval_iterations * c.global_batch);
  evaluated_ = iteration_;
  record_->evaluations.push_back({iteration_, loss});
  hooks_.print(format_validation(where, loss));
}

double StepLoop::evaluation_loss(const std::shared_ptr<const SampleSource>& source,
                                 int64_t first_sample) {
  const Config& c = parts_.config;
  if (c.epochs > 0)
    return mean_loss(parts_.stream, parts_.stage, *activations_, batch_,
                     *make_sample_blocks(source, c.sequence), evaluation_, parts_.communicator);
  const auto loader = make_loader(c, parts_.communicator, parts_.stream, source, first_sample,
                                  evaluation_in_flight);
  return mean_batch_loss(parts_.stream, parts_.stage, *activations_, batch_, *loader,
                         c.eval_iterations * most_micro_batches_, evaluation_, parts_.communicator);
}

void StepLoop::save() {
  hooks_.save(iteration_, consumed_);
  saved_ = iteration_;
}

}  // namespace tally::train
