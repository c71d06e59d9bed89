// The optimizer over flat buffers: every parameter of the model is one range of them.
//   gradients, master weights, moments: f32 (f64 for f64); weights: the compute type
#pragma once

#include "src/device/step_state.h"
#include "src/device/stream.h"
#include "src/device/tensor.h"

namespace tally::train {

struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};

// state->grad_norm = |g| / loss_scale, state->clip_factor, state->found_inf. Fixed order of
// additions. `workspace`: norm_workspace() bytes.
void gradient_norm(Stream& s, const Tensor& gradients, StepState* state, const Tensor& workspace);
size_t norm_workspace(Stream& s, int64_t elements);

// Decoupled weight decay (Loshchilov & Hutter 2019, as torch.optim.AdamW):
//   g *= clip_factor; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2
//   w -= lr * (decay * w + (m / bias_correction1) / (sqrt(v / bias_correction2) + eps))
// for elements [0, decayed) with weight decay, the rest without; the rounded w goes to `weights`
// (which may be `master` itself in f32 and f64). Nothing happens when state->found_inf is set.
// Gradients are zeroed where `zero_gradients`. `sms`: so many of a GPU's do it and are
// taken whole, so that the others are free for other work; 0: all.
void adamw_step(Stream& s, const AdamW& hyper, const StepState* state, int64_t decayed,
                const Tensor& gradients, const Tensor& master, const Tensor& m, const Tensor& v,
                const Tensor& weights, bool zero_gradients, int sms = 0);

}  // namespace tally::train
