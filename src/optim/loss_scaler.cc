#include "src/optim/loss_scaler.h"

#include <algorithm>

namespace tally::train {

LossScaler::LossScaler(const Config& config) {
  if (config.precision != Precision::f16) return;
  dynamic_ = config.loss_scale <= 0;
  scale_ = dynamic_ ? config.initial_loss_scale : config.loss_scale;
  minimum_ = config.min_loss_scale;
  window_ = config.loss_scale_window;
  hysteresis_ = config.hysteresis;
  hysteresis_left_ = hysteresis_;
}

void LossScaler::update(bool found_inf) {
  if (!dynamic_) return;
  if (found_inf) {
    growth_steps_ = 0;
    // Used-up hysteresis is restored only when the scale grows. Until then every overflow halves
    // the scale.
    if (--hysteresis_left_ <= 0) scale_ = std::max(scale_ * 0.5, minimum_);
    return;
  }
  if (++growth_steps_ < window_) return;
  growth_steps_ = 0;
  hysteresis_left_ = hysteresis_;
  scale_ *= 2;
}

void LossScaler::restore(const State& state) {
  if (!dynamic_) return;
  scale_ = state.scale;
  growth_steps_ = state.growth_steps;
  hysteresis_left_ = state.hysteresis_left;
}

}  // namespace tally::train
