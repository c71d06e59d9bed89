// The few numbers that change from step to step and that kernels read from device memory, so that
// one recorded CUDA graph can serve every step and the host need not wait to learn them.
#pragma once

#include <cstdint>

namespace tally::train {

// Doubles where float64 training (the tests' oracle) would lose its accuracy; kernels of other
// precisions round them to float once.
struct StepState {
  // Written by the host before a step.
  double learning_rate;
  double bias_correction1;  // 1 - beta1^t
  double bias_correction2;  // 1 - beta2^t
  double weight_decay;
  float loss_scale;  // multiplies the loss's gradient (fp16, a power of two); 1 otherwise
  float clip;        // maximum gradient norm; 0: no clipping
  // Written by the device during a step.
  double clip_factor;  // min(1, clip / (norm + 1e-6)) / loss_scale
  float grad_norm;     // of the unscaled gradient, before clipping
  float found_inf;     // 1 when a gradient was not finite: the update is left out
  double loss_sum;     // sum of the mean losses of the step's micro batches
};

}  // namespace tally::train
