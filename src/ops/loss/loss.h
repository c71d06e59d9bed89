// Softmax cross-entropy, alone or fused with the GEMM of the head. f32 logits are never stored: the
// logits' gradient takes their place.
//   losses[i] = -log softmax(logits[i])[labels[i]]
//   logits[M,Vp]: the compute type (Vp >= vocabulary: padding columns take no part); labels[M] i32,
//   negative: the row does not count; losses[M]: f32 (f64 for f64)
//
// Which version serves what:
//   CPU (cpu.cc)          both operations, every type, exact in any range
//   cross_entropy.cu      cross_entropy for every type on every GPU. A 16-bit row that fits a
//                         block's shared memory and consists of whole 16-byte vectors is read once
//                         and written once; other rows are read twice.
//   vocab_parallel*       cross_entropy_sums and _from_sums for every type: the CPU, and GPUs with a
//                         block a row, which is read twice and written once
//   fused.cc              linear_cross_entropy for bf16 on compute capability 9.0 (fused linear
//                         cross-entropy): the exponentials are taken in the epilogue of a CUTLASS
//                         GEMM (fused_gemm.h), kernels around it sum and repair rows
//                         (fused_passes.h). M must be a multiple of the tile's rows (128 or 64), Vp
//                         and C of 8, addresses of 16.
//
// How the head chooses (nn/lm_head.cc): linear_cross_entropy where linear_cross_entropy_pays(),
// else linear_forward and cross_entropy.
//   GPU               autotune times both at the first call of a shape, and the variants of the
//                     fused GEMM among each other
//   CPU               fused for every type but f16, whose range the sums over a vocabulary exceed
//   --deterministic   fused wherever a kernel serves; its first variant; nothing is timed
//   --no-fusion head  never fused
//   the build         not fused on a GPU without CUTLASS or without code for compute capability 9.0
// Evaluation uses cross_entropy without a backward pass.
//
// Results repeat bit for bit: sums have a fixed order. DeviceError: linear_cross_entropy is called
// where no kernel serves; the type is not a floating-point type (on the CPU:
// std::invalid_argument).
#pragma once

#include "src/device/compute_options.h"
#include "src/device/step_state.h"
#include "src/device/tensor.h"

namespace tally::train {

// A negative label gives loss 0 and gradient 0. With `backward`, logits become (softmax - onehot) *
// factor * state->loss_scale, and padding columns 0 (of a row whose sum is finite). `factor` is 1 /
// (labels of the step that count). `state` may be null: loss scale 1. A row with a logit that is
// NaN or +infinity has such a loss.
void cross_entropy(Stream& s, const Tensor& logits, const Tensor& labels, int64_t vocabulary,
                   bool backward, LossFactor factor, const StepState* state, const Tensor& losses);

// The same fused with the GEMM before it, z = x w^T, of which only exponentials are stored,
// relative to a number m_i of each row that keeps them in range:
//   e[i,j] = exp(z[i,j] - m_i);   S_i = sum over j of e[i,j];   losses[i] = log(S_i) + m_i -
//                                 z[i,t_i]
//   scales[i] = factor * state->loss_scale / S_i
// The gradient at z[i,j] is scales[i] e[i,j], and at the label t_i scales[i] S_i less. So on return
// S_i is subtracted from e[i,t_i], padding columns are 0, and x[i] is multiplied by scales[i]: the
// gradient of w is e^T x, and that at x is scale_rows(scales, e w). Exact in any range, like
// cross_entropy. A negative label: loss and scale 0, e finite where x and w are.
//   x[M,C], w[Vp,C], e[M,Vp]: compute type; labels[M] i32; losses[M], scales[M]: f32 (f64 for f64)
void linear_cross_entropy(const Compute& c, const Tensor& x, const Tensor& w, const Tensor& labels,
                          int64_t vocabulary, LossFactor factor, const StepState* state,
                          const Tensor& losses, const Tensor& scales, const Tensor& e);
// Whether it serves these sizes and takes less time than linear_forward and cross_entropy. The
// first call of a shape times both, which overwrites losses, scales and e.
bool linear_cross_entropy_pays(const Compute& c, const Tensor& x, const Tensor& w,
                               const Tensor& labels, int64_t vocabulary, const Tensor& losses,
                               const Tensor& scales, const Tensor& e);

// Vocabulary-parallel cross-entropy (Shoeybi et al., arXiv:1909.08053, section 3): `shards`
// processes hold the logits of neighbouring columns of the same rows. Each takes three sums of a
// row, they are gathered, and each finishes its columns.
struct VocabularyColumns {
  int64_t first = 0;  // the vocabulary's column that the logits begin with
  int64_t count = 0;  // columns that are no padding; may be 0
};
// sums[3,M], f32 (f64 for f64): the largest logit of the row (-infinity where count is 0), the sum
// of exp(logit - largest), and the label's logit, 0 where another process has it.
void cross_entropy_sums(Stream& s, const Tensor& logits, const Tensor& labels,
                        VocabularyColumns columns, const Tensor& sums);
// losses[M] as cross_entropy(), the same on every process, from all_sums[shards,3,M]. With
// `backward`, logits become their gradient as in cross_entropy().
void cross_entropy_from_sums(Stream& s, const Tensor& logits, const Tensor& labels,
                             VocabularyColumns columns, const Tensor& all_sums, bool backward,
                             LossFactor factor, const StepState* state, const Tensor& losses);

// *sum += factor * sum(losses), in a fixed order, in f64. `sum` is in device memory.
void add_losses(Stream& s, const Tensor& losses, LossFactor factor, double* sum);

// *correct += the rows whose label has the largest logit, the first of several that are equal. A
// negative label, and a row with a NaN, does not count. `correct` is in device memory.
void add_correct(Stream& s, const Tensor& logits, const Tensor& labels, int64_t vocabulary,
                 double* correct);

}  // namespace tally::train
