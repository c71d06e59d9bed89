// The factor that keeps float16 gradients from vanishing: Megatron-LM's dynamic gradient scaler.
#pragma once

#include <cstdint>

#include "src/config/config.h"

namespace tally::train {

class LossScaler {
 public:
  // fp16: --loss-scale when given (then constant), else dynamic. Other precisions: constant 1.
  explicit LossScaler(const Config& config);

  double scale() const { return scale_; }
  // Whether the scale follows the overflows.
  bool dynamic() const { return dynamic_; }
  double minimum() const { return minimum_; }
  int64_t window() const { return window_; }
  int64_t hysteresis() const { return hysteresis_; }
  // Called after a step: when a gradient overflowed `hysteresis` times since the last growth, the
  // scale halves (not below the minimum); after `window` steps without overflow it doubles.
  void update(bool found_inf);

  struct State {
    double scale = 1;
    int64_t growth_steps = 0, hysteresis_left = 0;
  };
  State state() const { return {scale_, growth_steps_, hysteresis_left_}; }
  void restore(const State& state);

 private:
  bool dynamic_ = false;
  double scale_ = 1, minimum_ = 1;
  int64_t window_ = 0, hysteresis_ = 0;
  int64_t growth_steps_ = 0, hysteresis_left_ = 0;
};

}  // namespace tally::train
