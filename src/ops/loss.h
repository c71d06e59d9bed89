// Softmax cross-entropy that never stores f32 logits: the logits' gradient takes their place.
//   logits[M,Vp] compute type (Vp >= vocabulary: the padding takes no part), targets[M] i32,
//   losses[M] f32
// (f64 for f64)
#pragma once

#include "src/ops/step_state.h"
#include "src/ops/stream.h"
#include "src/ops/tensor.h"

namespace tally::train {

// losses[i] = -log softmax(logits[i])[targets[i]]; a negative target is left out (loss 0, gradient
// 0). With `backward`, logits become (softmax - onehot) * factor * state->loss_scale, padding
// columns 0 (of a row whose sum is finite). `factor` is 1 / (tokens of the step that count). state
// may be null: loss scale 1.
void cross_entropy(Stream& s, const Tensor& logits, const Tensor& targets, int64_t vocabulary,
                   bool backward, double factor, const StepState* state, const Tensor& losses);

// state->loss_sum += factor * sum(losses), in a fixed order, in f64.
void add_losses(Stream& s, const Tensor& losses, double factor, StepState* state);

}  // namespace tally::train
