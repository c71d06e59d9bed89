// The few numbers that change from step to step. Kernels read them from device memory, so that one
// recorded CUDA graph serves every step and the host need not wait for them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "src/device/philox.h"

namespace tally::train {

// Doubles are those for which float32 would cost float64 training (the tests' oracle) its accuracy.
// Kernels of other precisions round them to float once.
struct StepState {
  // Written by the host before a step.
  double learning_rate;
  double bias_correction1;  // 1 - beta1^t
  double bias_correction2;  // 1 - beta2^t
  double weight_decay;
  // The rates that hold instead if the update before was skipped. The host does not know yet
  // whether it was, and a skipped update does not advance the schedule.
  double learning_rate_after_skip, weight_decay_after_skip;
  float clip;  // maximum gradient norm; 0: no clipping
  // Written by the device during a step.
  double clip_factor;  // min(1, clip / (norm + 1e-6)) / loss_scale
  float grad_norm;     // norm of the unscaled gradient, before clipping
  float found_inf;     // 1 when a gradient was not finite: the update is skipped
  // The sum of the weighted losses of the step's micro batches, of each head.
  double loss_sums[2];
  // Written by the host before a step, summed over the ranks together with loss_sums: see
  // stop_vote().
  double stop_votes;
  // The same of this rank's labels of each head that count; 1 for a head that the model lacks. A
  // step in which a head has none has no loss, as a mean of nothing is no number.
  double labels[2];
  // Zeroed by the host before a step: the sum of squares of the parts of a gradient that several
  // processes share.
  double gradient_squares;

  // Written by the host before a step unless the scale is dynamic. A dynamic scale depends on
  // whether a step overflowed, so the device keeps it from step to step (update_dynamic_scale), and
  // the host learns it later.
  float loss_scale;            // multiplies the loss's gradient (fp16, a power of two); 1 otherwise
  float step_loss_scale;       // the scale that the step's gradients carried
  int32_t dynamic_scale;       // 1: the device adapts the scale
  int32_t scale_window;        // clean steps before it doubles
  int32_t scale_hysteresis;    // overflows before it halves
  int32_t scale_growth_steps;  // clean steps since it changed
  int32_t scale_hysteresis_left;  // overflows still tolerated
  float scale_minimum;
  int32_t last_skipped;  // 1: the update before was skipped
  int64_t updates;       // steps that were not skipped: t of the bias corrections
  double beta1, beta2;   // for the bias corrections

  // Written by the host before each micro batch of a recorded step, in one copy.
  struct MicroBatch {
    uint64_t dropout_seed;  // see DropoutSeed
    double counted;         // labels that count; see LossFactor
  } micro_batch;
  // Labels of each head that count in the global batch: written by the host before a step's first
  // micro batch, and summed over the replicas. Only of runs that divide by them, see
  // Config::divides_by_labels().
  double counted[2];

  bool has_labels() const { return labels[0] > 0 && labels[1] > 0; }
  // The mean loss of all heads.
  double loss() const { return loss_sums[0] + loss_sums[1]; }
};

// The factor of a micro batch's losses: a number known when an operation is called, or one divided
// by a number of labels that is read from device memory when the operation runs. The latter lets a
// recorded step serve micro batches in which different numbers of labels count, and lets the host
// enqueue operations before it knows what other replicas have counted.
struct LossFactor {
  double value = 1;
  const double* counted = nullptr;  // in device memory; null: `value` is the factor

  LossFactor(double factor) : value(factor) {}
  LossFactor(double weight, const double* labels) : value(weight), counted(labels) {}
  // Call it where the operation runs: on the device. Without a label that counts it is 0.
  TALLY_HOST_DEVICE double get() const {
    if (counted == nullptr) return value;
    return *counted > 0 ? value / *counted : 0;
  }
};

// The seed of a dropout mask: a number known when an operation is called, or one site's seed
// (site_seed) made from the seed in the step's state when the operation runs. The latter lets a
// recorded step draw new masks at every replay.
struct DropoutSeed {
  const StepState* state = nullptr;  // in device memory; null: `value` is the seed
  uint64_t value = 0;                // the seed, or the site

  DropoutSeed() = default;
  DropoutSeed(uint64_t seed) : value(seed) {}
  DropoutSeed(const StepState* s, uint64_t site) : state(s), value(site) {}
  // Call it where the operation runs: on the device.
  TALLY_HOST_DEVICE uint64_t get() const {
    return state != nullptr ? site_seed(state->micro_batch.dropout_seed, value) : value;
  }
};

// The mask of one dropout site: the probability, and the seed from which the mask
// follows together with an element's index (philox.h), so that it is the same on every device.
struct DropoutMask {
  double probability = 0;
  DropoutSeed seed;
};

// The bytes that the host writes before every step when the scale is dynamic. It writes the rest
// once.
inline constexpr size_t step_state_host_bytes = offsetof(StepState, loss_scale);

// The device's part of LossScaler::update() (Megatron-LM's rule), Adam's bias corrections and the
// rates of the step. Called by one thread when found_inf is known; does nothing unless the scale is
// dynamic.
TALLY_HOST_DEVICE void update_dynamic_scale(StepState* s) {
  s->step_loss_scale = s->loss_scale;
  if (s->dynamic_scale == 0) return;
  if (s->last_skipped != 0) {
    s->learning_rate = s->learning_rate_after_skip;
    s->weight_decay = s->weight_decay_after_skip;
  }
  s->last_skipped = s->found_inf != 0 ? 1 : 0;
  if (s->found_inf != 0) {
    s->scale_growth_steps = 0;
    if (--s->scale_hysteresis_left > 0) return;
    const float half = s->loss_scale * 0.5F;
    s->loss_scale = half > s->scale_minimum ? half : s->scale_minimum;
    return;
  }
  s->updates += 1;
  s->bias_correction1 = 1 - pow(s->beta1, static_cast<double>(s->updates));
  s->bias_correction2 = 1 - pow(s->beta2, static_cast<double>(s->updates));
  if (++s->scale_growth_steps < s->scale_window) return;
  s->scale_growth_steps = 0;
  s->scale_hysteresis_left = s->scale_hysteresis;
  s->loss_scale *= 2;
}

}  // namespace tally::train
