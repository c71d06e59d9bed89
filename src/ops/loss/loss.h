// Softmax cross-entropy, alone or fused with the GEMM of the head. f32 logits are never stored: the
// logits' gradient takes their place.
//   losses[i] = -log softmax(logits[i])[labels[i]]
//   logits[M,Vp]: the compute type (Vp >= vocabulary: padding columns take no part); labels[M] i32,
//   negative: the row does not count; losses[M]: f32 (f64 for f64)
//
// The versions, and what each serves:
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
// The head's choice (nn/lm_head.cc): linear_cross_entropy where linear_cross_entropy_pays(), else
// linear_forward and cross_entropy.
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

#include <optional>

#include "src/device/step_state.h"
#include "src/ops/operation.h"

namespace tally::train {

struct Labels {
  In labels;               // [M] i32; negative: the row does not count
  int64_t vocabulary = 0;  // columns that are no padding
};
// The gradient of factor * state->loss_scale times the losses. `factor` is 1 / (labels of the step
// that count). `state` may be null: loss scale 1.
struct LossGradient {
  LossFactor factor;
  const StepState* state = nullptr;
};

// A negative label gives loss 0 and gradient 0. With a gradient, logits become (softmax - onehot) *
// factor * state->loss_scale, and padding columns 0 (of a row whose sum is finite). A row with a
// logit that is NaN or +infinity has such a loss.
inline Operation<void(Stream& s, Out logits, Labels labels, std::optional<LossGradient> gradient,
                      Out losses)>
    cross_entropy{"cross_entropy"};

// The same fused with the GEMM before it, z = x w^T, of which only exponentials are stored,
// relative to a number m_i of each row that keeps them in range:
//   e[i,j] = exp(z[i,j] - m_i);   S_i = sum over j of e[i,j];   losses[i] = log(S_i) + m_i -
//                                 z[i,t_i]
//   scales[i] = factor * state->loss_scale / S_i
// The gradient at z[i,j] is scales[i] e[i,j], and at the label t_i scales[i] S_i less. So on return
// S_i is subtracted from e[i,t_i], padding columns are 0, and x[i] is multiplied by scales[i]: the
// gradient of w is e^T x, and that at x is scale_rows(scales, e w). Exact in any range, like
// cross_entropy. A negative label: loss and scale 0, e finite where x and w are.
//   x[M,C], w[Vp,C], e[M,Vp]: compute type; losses[M], scales[M]: f32 (f64 for f64)
struct HeadOperands {
  Out x;
  In w;
  Labels labels;
};
struct HeadResults {
  Out losses, scales, e;
};
inline Operation<void(const Compute& c, const HeadOperands& head, LossGradient gradient,
                      const HeadResults& results)>
    linear_cross_entropy{"linear_cross_entropy"};
// Whether it serves these sizes and takes less time than linear_forward and cross_entropy. The
// first call of a shape times both, which overwrites the results, and not x.
inline Operation<bool(const Compute& c, const HeadOperands& head, const HeadResults& results)>
    linear_cross_entropy_pays{"linear_cross_entropy_pays"};

// Vocabulary-parallel cross-entropy (Shoeybi et al., arXiv:1909.08053, section 3): `shards`
// processes hold the logits of neighbouring columns of the same rows. Each takes three sums of a
// row, they are gathered, and each finishes its columns.
struct VocabularyColumns {
  int64_t first = 0;  // the vocabulary's column that the logits begin with
  int64_t count = 0;  // columns that are no padding; may be 0
};
struct PartLabels {
  In labels;
  VocabularyColumns columns;
};
// sums[3,M], f32 (f64 for f64): the largest logit of the row (-infinity where count is 0), the sum
// of exp(logit - largest), and the label's logit, 0 where another process has it.
inline Operation<void(Stream& s, In logits, PartLabels labels, Out sums)> cross_entropy_sums{
    "cross_entropy_sums"};
// losses[M] and, with a gradient, the logits as cross_entropy(), from all_sums[shards,3,M]. The
// losses are the same on every process.
struct PartLogits {
  Out logits;
  PartLabels labels;
  In all_sums;
};
inline Operation<void(Stream& s, const PartLogits& part, std::optional<LossGradient> gradient,
                      Out losses)>
    cross_entropy_from_sums{"cross_entropy_from_sums"};

// *sum += factor * sum(losses), in a fixed order, in f64. `sum` is in device memory.
inline Operation<void(Stream& s, In losses, LossFactor factor, double* sum)> add_losses{
    "add_losses"};

// *correct += the rows whose label has the largest logit, the first of several that are equal. A
// negative label, and a row with a NaN, does not count. `correct` is in device memory.
inline Operation<void(Stream& s, In logits, Labels labels, double* correct)> add_correct{
    "add_correct"};

}  // namespace tally::train
