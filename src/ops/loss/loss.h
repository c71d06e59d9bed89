// Softmax cross-entropy that never stores f32 logits: the logits' gradient takes their place.
//   logits[M,Vp] compute type (Vp >= vocabulary: the padding takes no part), labels[M] i32,
//   losses[M] f32 (f64 for f64)
//
// Which version serves what:
//   CPU (cpu.cc)                      both operations, every type, exact in any range
//   cross_entropy.cu                  every type on every GPU; 16-bit rows that fit shared memory are
//                                     read once and written once
//   linear_cross_entropy (fused*)     bf16 on compute capability 9.0: the exponentials are taken in
//                                     the epilogue of the head's GEMM, where autotuning finds it
//                                     faster than the GEMM and cross_entropy
#pragma once

#include "src/device/compute_options.h"
#include "src/device/step_state.h"
#include "src/device/tensor.h"

namespace tally::train {

// losses[i] = -log softmax(logits[i])[labels[i]]; a negative label is left out (loss 0, gradient 0).
// With `backward`, logits become (softmax - onehot) * factor * state->loss_scale, padding columns 0
// (of a row whose sum is finite). `factor` is 1 / (labels of the step that count). state may be null:
// loss scale 1. A logit that is infinite upwards or not a number makes its row's loss so.
void cross_entropy(Stream& s, const Tensor& logits, const Tensor& labels, int64_t vocabulary,
                   bool backward, LossFactor factor, const StepState* state, const Tensor& losses);

// The same with the GEMM before it, z = x w^T, of which only exponentials are kept, relative to a
// number m_i of each row that keeps them in range:
//   e[i,j] = exp(z[i,j] - m_i);   S_i = sum over j of e[i,j];   losses[i] = log(S_i) + m_i - z[i,t_i]
//   scales[i] = factor * state->loss_scale / S_i
// The gradient at z[i,j] is scales[i] e[i,j], less scales[i] S_i at the label t_i. So on return
// e[i,t_i] is S_i less, padding columns are 0, and x[i] has been multiplied by scales[i]: the gradient
// of w is e^T x, and that at x is scale_rows(scales, e w). Exact in any range, as cross_entropy. A
// negative label: loss and scale 0, e finite where x and w are.
//   x[M,C], w[Vp,C], e[M,Vp]: compute type; labels[M] i32; losses[M], scales[M]: f32 (f64 for f64)
void linear_cross_entropy(const Compute& c, const Tensor& x, const Tensor& w, const Tensor& labels,
                          int64_t vocabulary, LossFactor factor, const StepState* state,
                          const Tensor& losses, const Tensor& scales, const Tensor& e);
// Whether it serves these sizes and takes less time than linear_forward and cross_entropy: by timing
// at the first call with a shape, which overwrites losses, scales and e.
bool linear_cross_entropy_pays(const Compute& c, const Tensor& x, const Tensor& w,
                               const Tensor& labels, int64_t vocabulary, const Tensor& losses,
                               const Tensor& scales, const Tensor& e);

// state->loss_sum += factor * sum(losses), in a fixed order, in f64.
void add_losses(Stream& s, const Tensor& losses, LossFactor factor, StepState* state);

}  // namespace tally::train
