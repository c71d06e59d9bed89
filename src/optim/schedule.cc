#include "src/optim/schedule.h"

#include <cmath>
#include <numbers>
#include <stdexcept>

namespace tally::train {

double learning_rate(const OptimizerConfig& config, int64_t samples) {
  const auto done = static_cast<double>(samples);
  if (config.warmup_samples > 0 && done <= config.warmup_samples) {
    return config.warmup_init + (config.lr - config.warmup_init) * done / config.warmup_samples;
  }
  if (config.decay_style == "constant") return config.lr;
  if (samples > config.decay_samples) return config.min_lr;
  const double span = static_cast<double>(config.decay_samples) - config.warmup_samples;
  const double ratio = span > 0 ? (done - config.warmup_samples) / span : 0;
  const double range = config.lr - config.min_lr;
  if (config.decay_style == "linear") return config.min_lr + range * (1 - ratio);
  if (config.decay_style == "cosine") {
    return config.min_lr + range * 0.5 * (std::cos(std::numbers::pi * ratio) + 1);
  }
  throw std::invalid_argument("--lr-decay-style is constant, linear or cosine, not " +
                              config.decay_style);
}

double weight_decay(const OptimizerConfig& config, int64_t samples) {
  if (config.weight_decay_style == "constant") return config.weight_decay;
  if (samples > config.weight_decay_samples) return config.end_weight_decay;
  const double ratio =
      static_cast<double>(samples) / static_cast<double>(config.weight_decay_samples);
  const double range = config.end_weight_decay - config.weight_decay;
  if (config.weight_decay_style == "linear") return config.weight_decay + range * ratio;
  if (config.weight_decay_style == "cosine") {
    return config.weight_decay + range * 0.5 * (std::cos(std::numbers::pi * (1 - ratio)) + 1);
  }
  throw std::invalid_argument("--weight-decay-incr-style is constant, linear or cosine, not " +
                              config.weight_decay_style);
}

}  // namespace tally::train
