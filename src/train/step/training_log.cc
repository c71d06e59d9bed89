#include "src/train/step/training_log.h"

#include <fmt/format.h>

#include <cmath>

#include "src/measure/flops.h"
#include "src/measure/log_line.h"
#include "src/optim/schedule.h"

namespace tally::train {

TrainingLog::TrainingLog(const Config& config, std::function<void(const std::string&)> print,
                         RunLists* lists)
    : config_(config), print_(std::move(print)), lists_(*lists) {}

void TrainingLog::start(bool within_epoch) {
  epoch_.partial = within_epoch;
  interval_start_ = Clock::now();
}

void TrainingLog::add(const Step& step) {
  ++interval_.steps;
  interval_.samples += step.samples;
  interval_.last = step;
  if (epoch_.first == 0) epoch_.first = step.iteration;
  if (step.skipped) {
    ++interval_.skipped;
    if (!step.unlabelled && !std::isfinite(step.loss)) ++interval_.nan;
  }
  if (!step.has_loss()) return;
  ++interval_.losses;
  interval_.loss_sum += step.loss;
  epoch_.loss += step.loss;
  ++epoch_.steps;
}

void TrainingLog::log_interval(const Progress& done, double loss_scale) {
  const Config& c = config_;
  const auto now = Clock::now();
  const std::chrono::duration<double> elapsed = now - interval_start_ - untimed_;
  const auto steps = static_cast<double>(interval_.steps);
  const double batch = static_cast<double>(interval_.samples) / steps;
  LogLine line;
  line.iteration = done.iteration;
  line.iterations = c.train_iterations;
  line.consumed_samples = done.consumed_samples;
  line.seconds_per_iteration = elapsed.count() / steps;
  line.learning_rate = learning_rate(c.optimizer, done.scheduled_samples);
  line.global_batch = interval_.last.samples;
  line.loss =
      interval_.losses > 0 ? interval_.loss_sum / static_cast<double>(interval_.losses) : -1;
  line.loss_scale = loss_scale;
  line.grad_norm = interval_.last.skipped ? -1 : interval_.last.grad_norm;
  line.skipped = interval_.skipped;
  line.nan = interval_.nan;
  const double gpu_seconds = line.seconds_per_iteration * c.world_size;
  line.samples_per_second = batch / line.seconds_per_iteration;
  line.tflops = batch / static_cast<double>(c.global_batch) * megatron_flops_per_iteration(c) /
                gpu_seconds / 1e12;
  line.throughput = batch * static_cast<double>(c.sequence) *
                    megatron_flops_per_token(c.model, c.sequence) / gpu_seconds / 1e12;
  print_(c.log_format == LogFormat::megatron
             ? format_megatron_log_line(line, c.log_throughput, log_time())
             : format_log_line(line));
  lists_.intervals.push_back(
      {done.iteration, interval_.steps, line.seconds_per_iteration, interval_.samples});
  interval_ = {};
  untimed_ = {};
  interval_start_ = now;
}

void TrainingLog::log_epoch(int64_t epoch, int64_t iteration,
                            std::optional<double> validation_loss) {
  Epoch done;
  done.epoch = epoch;
  done.iteration = iteration;
  done.first_iteration = epoch_.first;
  done.loss = epoch_.steps > 0 ? epoch_.loss / static_cast<double>(epoch_.steps) : std::nan("");
  done.validation_loss = validation_loss;
  std::string line = fmt::format(
      " epoch {:4d}/{:4d} | iteration {:8d} | lm loss: {} |", epoch, config_.epochs, iteration,
      epoch_.steps > 0 ? fmt::format("{:.6E}", done.loss) : "unknown, no step has one");
  if (epoch_.partial)
    line += fmt::format(" of iterations {} to {}, since the run was resumed |", epoch_.first,
                        iteration);
  if (validation_loss)
    line += fmt::format(" validation loss: {:.6E} | validation PPL: {:.6E} |", *validation_loss,
                        perplexity(*validation_loss));
  print_(line);
  lists_.epochs.push_back(done);
  epoch_ = {};
}

}  // namespace tally::train
