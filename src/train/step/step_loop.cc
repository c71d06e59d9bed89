#include "src/train/step/step_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/measure/log_line.h"
#include "src/optim/schedule.h"
#include "src/train/step/advice.h"

namespace tally::train {
namespace {

// Steps whose results may wait for the next log line.
int slots(const Config& config) {
  return static_cast<int>(std::min<int64_t>(config.log_interval, 256));
}

// The sign of what is not a number tells nothing.
std::string shown(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

}  // namespace

StepLoop::StepLoop(const LoopParts& parts, LoopHooks hooks, RunLists* lists)
    : parts_(parts),
      hooks_(std::move(hooks)),
      lists_(lists),
      results_(parts.stream, slots(parts.config)),
      forward_backward_(parts.config, parts.stream, parts.table, parts.stages, parts.mesh,
                        parts.optimizer, slots(parts.config)),
      recorded_update_(records_graphs(parts.config, parts.stream) ? StepGraph::make(parts.stream)
                                                                  : nullptr),
      watch_(parts.mesh.world().watch()),
      stop_(parts.mesh.world().size()),
      log_(parts.config, hooks_.print, lists),
      evaluator_(
          parts.config, parts.stream,
          [this](const Batch& batch, const Pass& pass) {
            forward_backward_.pipeline().evaluate(batch, pass);
          },
          [this] { return parts_.stages.back()->logits(); }, parts.mesh) {
  if (parts_.config.time_phases) {
    timer_ = std::make_unique<PhaseTimer>(parts_.stream);
    forward_backward_.set_phase_timer(timer_.get());
    return;  // a deferred update or gather would overlap with the next forward pass
  }
  // Gradients that are zeroed at a step's start cannot wait for a deferred update.
  if (!parts_.config.policy.fusions.overwrite) return;
  if (parts_.optimizer.sharding()) {
    // A share's update is short, and others wait for its weights.
    parts_.optimizer.defer_gather(true);
    return;
  }
  if (!parts_.optimizer.can_defer()) return;
  // The update overlaps inside of graphs only on a GPU: the small fills that cuBLASLt and cuDNN
  // enqueue wait, in an eager step, for the kernel on the side stream (bench/notes/encoders.md).
  if (parts_.stream.device().is_cuda() && !records_graphs(parts_.config, parts_.stream)) return;
  DeferredUpdate* deferred = parts_.stages.front()->deferred_update();
  if (!deferred || deferred->first() == deferred->last()) return;
  parts_.optimizer.defer(deferred->first(), deferred->last());
  deferred->set([&optimizer = parts_.optimizer](Stream& on, int64_t first, int64_t last, int sms) {
    optimizer.update_deferred(on, first, last, sms);
  });
}

StepLoop::~StepLoop() {
  if (DeferredUpdate* deferred = parts_.stages.front()->deferred_update()) deferred->set({});
  parts_.optimizer.defer(0, 0);  // later users update everything at once
  parts_.optimizer.defer_gather(false);
}

Ending StepLoop::run(const Progress& done) {
  const Config& c = parts_.config;
  const int64_t iteration = done.iteration;
  enqueued_ = done;
  saved_ = iteration;
  loader_ =
      make_loader(c, parts_.mesh.samples(), parts_.stream, parts_.train, enqueued_.consumed_samples,
                  static_cast<int>(StepResults::run_ahead * c.micro_batches()));
  Ending ending = told_to_stop();
  hooks_.agree_on_algorithms();
  parts_.stream.synchronize();
  log_.start(c.epochs > 0 && done.consumed_samples % c.epoch_samples != 0);
  while (ending.outcome == Outcome::completed && !reached_ &&
         enqueued_.iteration < c.train_iterations) {
    if (watch_) watch_->set_iteration(enqueued_.iteration + 1);
    if (parts_.window) parts_.window->before_step(enqueued_.iteration + 1);
    step();
    if (parts_.window) log_.untimed([&] { parts_.window->after_step(enqueued_.iteration); });
    if (enqueued_.iteration - iteration <= StepGraph::eager_calls) hooks_.agree_on_algorithms();
    do_what_is_due(due());
    ending = told_to_stop();
    if (c.exit_interval > 0 && enqueued_.iteration % c.exit_interval == 0) break;
  }
  finish(enqueued_.iteration == c.train_iterations && enqueued_.iteration > iteration);
  return ending;
}

void StepLoop::rewind(int64_t steps) {
  const Config& c = parts_.config;
  Progress& p = enqueued_;
  p.iteration -= steps;
  p.consumed_samples = std::max<int64_t>(p.consumed_samples - steps * last_samples_, 0);
  p.scheduled_samples = std::max<int64_t>(p.scheduled_samples - steps * last_samples_, 0);
  loader_.reset();
  loader_ = make_loader(c, parts_.mesh.samples(), parts_.stream, parts_.train, p.consumed_samples,
                        static_cast<int>(StepResults::run_ahead * c.micro_batches()));
}

void StepLoop::repeat(int64_t steps, Calls calls) {
  forward_backward_.set_eager(calls == Calls::eager);
  for (int64_t k = 0; k < steps; ++k) {
    step();
    if (results_.full()) forget_results();
  }
  forward_backward_.set_eager(false);
  parts_.optimizer.complete();
  forget_results();
  parts_.stream.synchronize();
}

// Enqueues a step: load, forward, backward, reduce, update.
void StepLoop::step() {
  const Config& c = parts_.config;
  Optimizer& optimizer = parts_.optimizer;
  const int64_t samples = c.global_batch_at(enqueued_.consumed_samples);
  const int known = results_.done();
  const int slot = results_.begin(samples);
  learn_outcomes(known);
  if (timer_) timer_->begin();
  // The device knows whether the last step's update was skipped; the host may not yet.
  static_assert(StepResults::run_ahead == 2, "more than one step has an unknown outcome");
  const int64_t unknown = results_.done() < slot ? results_.samples(slot - 1) : 0;
  optimizer.begin_step(rates(c.optimizer, enqueued_.scheduled_samples + unknown),
                       rates(c.optimizer, enqueued_.scheduled_samples), results_.staging(),
                       stop_.vote());
  forward_backward_.run(loader_.get(), enqueued_.consumed_samples, slot);
  if (recorded_update_) {
    recorded_update_->run([this] { update(); });
  } else {
    update();
  }
  if (timer_) {
    timer_->end(StepPhase::optimizer_update);
    lists_->phases.push_back(timer_->seconds());
  }
  results_.end(optimizer.state());
  // A skipped update under a constant scale is found with the results and ends the run.
  optimizer.finish_enqueued();
  ++enqueued_.iteration;
  enqueued_.consumed_samples += samples;
  last_samples_ = samples;
}

// Takes the outcomes of the pending steps that the device has finished, from index `first` on.
void StepLoop::learn_outcomes(int first) {
  for (int k = first; k < results_.done(); ++k) {
    const StepState& state = results_.state(k);
    stop_.count(state);
    if (state.found_inf == 0) enqueued_.scheduled_samples += results_.samples(k);
  }
}

void StepLoop::update() {
  // Each rank has a part of the loss, or none. The gradients are summed already.
  static_assert(offsetof(StepState, labels) == offsetof(StepState, loss_sums) + 3 * sizeof(double));
  Communicator& world = parts_.mesh.world();
  if (world.size() > 1) {
    world.all_reduce(parts_.stream, Tensor(parts_.optimizer.state()->loss_sums, DType::f64, {5}));
    if (timer_) timer_->end(StepPhase::gradient_reduction);
  }
  parts_.optimizer.apply(!parts_.config.policy.fusions.overwrite);
}

StepLoop::Due StepLoop::due() const {
  const Config& c = parts_.config;
  const auto every = [this](int64_t interval) {
    return interval > 0 && enqueued_.iteration % interval == 0;
  };
  Due due{};
  due.log = every(c.log_interval);
  const int64_t apart = c.eval_interval_samples, consumed = enqueued_.consumed_samples;
  const bool completes = apart > 0 && consumed / apart > (consumed - last_samples_) / apart;
  due.evaluation = parts_.validation && (every(c.eval_interval) || completes);
  due.check = every(c.weight_check_interval);
  due.save = hooks_.save && every(c.save_interval);
  due.epoch_end =
      c.epochs > 0 && (enqueued_.iteration == c.train_iterations ||
                       enqueued_.consumed_samples / c.epoch_samples >
                           (enqueued_.consumed_samples - c.global_batch) / c.epoch_samples);
  return due;
}

void StepLoop::do_what_is_due(const Due& due) {
  const bool pauses = due.evaluation || due.check || due.save || due.epoch_end;
  if (pauses) parts_.optimizer.complete();
  if (pauses || due.log || results_.full()) take_results();
  if (due.log) log_.log_interval(enqueued_, parts_.optimizer.scaler().scale());
  if (due.log) hooks_.recorded();
  if (!pauses) return;
  log_.untimed([&] {
    if (due.evaluation) evaluate(fmt::format("iteration {}", enqueued_.iteration));
    if (due.epoch_end) end_epoch();
    if (due.check) hooks_.check_weights();
    if (due.save) save();
  });
}

// Waits for the device and takes the results of the pending steps.
void StepLoop::take_results() {
  if (results_.pending() == 0) return;
  const int known = results_.done(), pending = results_.pending();
  {
    const OperationScope scope(watch_, -1, "device");
    results_.wait();
  }
  if (parts_.energy) parts_.energy->steps_done(enqueued_.iteration);
  learn_outcomes(known);
  parts_.optimizer.learn(results_.state(pending - 1));
  for (const Step& step : results_.take(enqueued_.iteration - pending + 1)) {
    lists_->steps.push_back(step);
    log_.add(step);
    check(step);
  }
  lists_->tokens_per_sample = loader_->tokens_per_sample();
  hooks_.recorded();
}

void StepLoop::forget_results() {
  if (results_.pending() == 0) return;
  const int known = results_.done(), pending = results_.pending();
  results_.wait();
  learn_outcomes(known);
  parts_.optimizer.learn(results_.state(pending - 1));
  results_.take(0);
}

void StepLoop::check(const Step& step) const {
  const Config& c = parts_.config;
  const bool loss_ok = step.unlabelled || std::isfinite(step.loss);
  if (loss_ok && !step.skipped) return;
  // fp16: an overflow leads to a smaller scale, until there is none.
  const bool dynamic_scale = parts_.optimizer.scaler().dynamic();
  if (dynamic_scale && step.skipped && (loss_ok || step.loss_scale > c.min_loss_scale)) return;
  throw CheckFailed(fmt::format(
      "iteration {}: the {} is not finite (loss {}, gradient norm {}, learning rate {:.3E}): {}",
      step.iteration, loss_ok ? "gradient" : "loss", shown(step.loss), shown(step.grad_norm),
      step.learning_rate, advice_for_divergence(c, step.iteration > 1)));
}

// Checks the last evaluation. The steps before it had finite losses, but their weights are not
// worth a checkpoint.
void StepLoop::check_evaluation() const {
  const Evaluation& e = lists_->evaluations.back();
  if (std::isfinite(e.loss)) return;
  throw CheckFailed(fmt::format("iteration {}: the {} loss is not finite ({}): {}", e.iteration,
                                e.split, shown(e.loss),
                                advice_for_divergence(parts_.config, e.iteration > 0)));
}

void StepLoop::evaluate(const std::string& where) {
  const Config& c = parts_.config;
  // Each evaluation takes the next samples, so that a resumed run takes those that the first run
  // would have taken. With --eval-interval-samples all take the same ones.
  const int64_t before = c.eval_interval > 0 ? (enqueued_.iteration - 1) / c.eval_interval : 0;
  hooks_.evaluating(enqueued_);
  const HeldOutResult found =
      evaluator_.evaluate(parts_.validation, before * c.eval_iterations * c.global_batch,
                          forward_backward_.pipeline().batch());
  evaluated_ = enqueued_.iteration;
  lists_->evaluations.push_back({enqueued_.iteration, found.loss, "validation", found.metrics});
  hooks_.recorded();
  hooks_.print(format_validation(where, found.loss, found.metrics));
  hooks_.evaluated(enqueued_, found.loss);
  check_evaluation();
  if (reached_ || c.target_loss == 0 || found.loss > c.target_loss) return;
  reached_ = true;  // all processes have the same loss
  hooks_.print(
      fmt::format("  target     a validation loss of at most {} after {} steps, {} samples",
                  c.target_loss, enqueued_.iteration, enqueued_.consumed_samples));
}

bool StepLoop::succeeded() const {
  if (parts_.config.target_loss > 0) return reached_;
  return enqueued_.iteration == parts_.config.train_iterations;
}

// Reports the end of an epoch, with the loss on the validation blocks where there are any.
void StepLoop::end_epoch() {
  const Config& c = parts_.config;
  const int64_t epoch = enqueued_.iteration == c.train_iterations
                            ? c.epochs
                            : enqueued_.consumed_samples / c.epoch_samples;
  std::optional<double> validation_loss;
  if (parts_.validation) {
    if (evaluated_ != enqueued_.iteration) evaluate(fmt::format("the end of epoch {}", epoch));
    validation_loss = lists_->evaluations.back().loss;
  }
  log_.log_epoch(epoch, enqueued_.iteration, validation_loss);
  hooks_.recorded();
}

void StepLoop::save() {
  hooks_.save(enqueued_);
  saved_ = enqueued_.iteration;
}

// `finished`: this run has done the last step.
void StepLoop::finish(bool finished) {
  parts_.optimizer.complete();
  take_results();
  if (finished && parts_.validation && evaluated_ != enqueued_.iteration)
    evaluate("the end of training for val data");
  if (finished && parts_.test) {
    const HeldOutResult found =
        evaluator_.evaluate(parts_.test, 0, forward_backward_.pipeline().batch());
    lists_->evaluations.push_back({enqueued_.iteration, found.loss, "test", found.metrics});
    hooks_.recorded();
    hooks_.print(format_validation("the end of training for test data", found.loss, found.metrics));
    check_evaluation();
  }
  if (hooks_.save && saved_ != enqueued_.iteration) save();
}

// A request to stop that this process received becomes its stop vote in the next step.
Ending StepLoop::told_to_stop() {
  stop_.tell(hooks_.stop());
  return stop_.outcome(parts_.config.exit_duration_minutes);
}

}  // namespace tally::train
