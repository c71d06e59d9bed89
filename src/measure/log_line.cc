#include "src/measure/log_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>

namespace tally::train {

std::string format_log_line(const LogLine& l) {
  std::string out = fmt::format(
      " iteration {:8d}/{:8d} | consumed samples: {:12d} | elapsed time per iteration (s): {:.4f} "
      "| "
      "learning rate: {:.3E} | global batch size: {:5d} |",
      l.iteration, l.iterations, l.consumed_samples, l.seconds_per_iteration, l.learning_rate,
      l.global_batch);
  if (l.loss > 0) out += fmt::format(" lm loss: {:.6E} |", l.loss);
  out += fmt::format(" loss scale: {:.1f} |", l.loss_scale);
  if (l.grad_norm >= 0) out += fmt::format(" grad norm: {:.3f} |", l.grad_norm);
  out += fmt::format(
      " number of skipped iterations: {:3d} | number of nan iterations: {:3d} | samples per "
      "second: {:.3f} "
      "| TFLOPs: {:.2f} |",
      l.skipped, l.nan, l.samples_per_second, l.tflops);
  return out;
}

std::string format_megatron_log_line(const LogLine& l, bool throughput, const std::string& time) {
  std::string out = fmt::format(
      " [{}] iteration {:8d}/{:8d} | consumed samples: {:12d} | elapsed time per iteration (ms): "
      "{:.1f} |",
      time, l.iteration, l.iterations, l.consumed_samples, l.seconds_per_iteration * 1000);
  if (throughput) out += fmt::format(" throughput per GPU (TFLOP/s/GPU): {:.1f} |", l.throughput);
  out += fmt::format(" learning rate: {:.6E} | global batch size: {:5d} |", l.learning_rate,
                     l.global_batch);
  if (l.loss >= 0) out += fmt::format(" lm loss: {:.6E} |", l.loss);
  out += fmt::format(" loss scale: {:.1f} |", l.loss_scale);
  if (l.grad_norm >= 0) out += fmt::format(" grad norm: {:.3f} |", l.grad_norm);
  out += fmt::format(" number of skipped iterations: {:3d} | number of nan iterations: {:3d} |",
                     l.skipped, l.nan);
  return out;
}

std::string log_time() {
  using std::chrono::duration_cast, std::chrono::microseconds;
  const auto now = std::chrono::system_clock::now();
  const int64_t ticks = duration_cast<microseconds>(now.time_since_epoch()).count();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return fmt::format("{}.{:06d}", text.data(), ticks % 1000000);
}

double perplexity(double loss) {
  return loss > 20 ? std::exp(20.0) : std::exp(loss);  // a NaN is not above 20
}

std::string format_validation(const std::string& where, double loss,
                              const std::vector<std::pair<std::string, double>>& metrics) {
  std::string line =
      fmt::format(" validation loss at {} | lm loss value: {:.6E} | lm loss PPL: {:.6E} | ", where,
                  loss, perplexity(loss));
  for (const auto& [name, value] : metrics) line += fmt::format("{} value: {:.6E} | ", name, value);
  const std::string rule(line.size() + 1, '-');
  return fmt::format("{}\n{}\n{}", rule, line, rule);
}

}  // namespace tally::train
