// Learning rate and weight decay over the samples of the updates done, as Megatron-LM's
// OptimizerParamScheduler computes them. An update that an overflow of fp16 skips does not advance
// them, as in Megatron-LM and Hugging Face Accelerate: else the warm-up would be over before the
// loss scale has been found.
#pragma once

#include <cstdint>

#include "src/config/config.h"

namespace tally::train {

// The rate after updates of `samples` samples. The step that starts there uses it; Megatron's log
// line shows the rate after the step.
//   samples <= warmup:  init + (lr - init) samples / warmup
//   constant:           lr
//   samples > decay:    min_lr
//   else, with r = (samples - warmup) / (decay - warmup):
//     linear            min_lr + (lr - min_lr) (1 - r)
//     cosine            min_lr + (lr - min_lr) (1 + cos(pi r)) / 2
// Throws std::invalid_argument on an unknown decay style.
double learning_rate(const OptimizerConfig& config, int64_t samples);

// The weight decay of the step that starts after updates of `samples` samples, from start to end
// over all samples of the training, r = samples / all:
//   linear  start + (end - start) r
//   cosine  start + (end - start) (1 + cos(pi (1 - r))) / 2
// Throws std::invalid_argument on an unknown style.
double weight_decay(const OptimizerConfig& config, int64_t samples);

// The rates that change from step to step.
struct Rates {
  double learning_rate = 0, weight_decay = 0;
};
inline Rates rates(const OptimizerConfig& config, int64_t samples) {
  return {learning_rate(config, samples), weight_decay(config, samples)};
}

}  // namespace tally::train
