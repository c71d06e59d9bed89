#include "src/optim/schedule.h"

#include <cmath>
#include <numbers>
#include <stdexcept>

namespace tally::train {

double learning_rate(const OptimizerConfig& config, int64_t samples) {
  if (config.warmup_samples > 0 && samples <= config.warmup_samples) {
    return config.lr * static_cast<double>(samples) / static_cast<double>(config.warmup_samples);
  }
  if (config.decay_style == "constant") return config.lr;
  if (samples > config.decay_samples) return config.min_lr;
  const int64_t span = config.decay_samples - config.warmup_samples;
  const double ratio =
      span > 0 ? static_cast<double>(samples - config.warmup_samples) / static_cast<double>(span)
               : 0;
  const double range = config.lr - config.min_lr;
  if (config.decay_style == "linear") return config.min_lr + range * (1 - ratio);
  if (config.decay_style == "cosine") {
    return config.min_lr + range * 0.5 * (std::cos(std::numbers::pi * ratio) + 1);
  }
  throw std::invalid_argument("--lr-decay-style is constant, linear or cosine, not " +
                              config.decay_style);
}

}  // namespace tally::train
