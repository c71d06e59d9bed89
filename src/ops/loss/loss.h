// Softmax cross-entropy that never stores f32 logits: the logits' gradient takes their place.
//   logits[M,Vp] compute type (Vp >= vocabulary: the padding takes no part), targets[M] i32,
//   losses[M] f32
// (f64 for f64)
#pragma once

#include "src/device/compute_options.h"
#include "src/device/step_state.h"
#include "src/device/tensor.h"

namespace tally::train {

// losses[i] = -log softmax(logits[i])[targets[i]]; a negative target is left out (loss 0, gradient
// 0). With `backward`, logits become (softmax - onehot) * factor * state->loss_scale, padding
// columns 0 (of a row whose sum is finite). `factor` is 1 / (tokens of the step that count). state
// may be null: loss scale 1.
void cross_entropy(Stream& s, const Tensor& logits, const Tensor& targets, int64_t vocabulary,
                   bool backward, double factor, const StepState* state, const Tensor& losses);

// The same with the product before it, z = x w^T, of which only exponentials relative to the
// target's are kept:
//   e[i,j] = exp(z[i,j] - z[i,t_i]), at most 2^80, for j != t_i;   s_i = sum over j of e[i,j];
//   losses[i] = log(1 + s_i);   shares[i] = factor * state->loss_scale / (1 + s_i)
// The gradient at z[i,j] is shares[i] e[i,j], and -shares[i] s_i at the target. So on return
// e[i,t_i] = -s_i, padding columns are 0, and x[i] has been multiplied by shares[i]: the gradient
// of w is e^T x, and that at x is scale_rows(shares, e w). A loss above 55 may come out smaller
// than it is: of columns that are more likely than the target by more than 2^80. A negative target:
// loss and share 0, e finite where x and w are.
//   x[M,C], w[Vp,C], e[M,Vp]: compute type; targets[M] i32; losses[M], shares[M]: f32 (f64 for f64)
void linear_cross_entropy(const Compute& c, const Tensor& x, const Tensor& w, const Tensor& targets,
                          int64_t vocabulary, double factor, const StepState* state,
                          const Tensor& losses, const Tensor& shares, const Tensor& e);
// Whether it is there for these sizes and takes less time than linear_forward and cross_entropy: by
// timing at the first call with a shape, which overwrites losses, shares and e.
bool linear_cross_entropy_pays(const Compute& c, const Tensor& x, const Tensor& w,
                               const Tensor& targets, int64_t vocabulary, const Tensor& losses,
                               const Tensor& shares, const Tensor& e);

// state->loss_sum += factor * sum(losses), in a fixed order, in f64.
void add_losses(Stream& s, const Tensor& losses, double factor, StepState* state);

}  // namespace tally::train
