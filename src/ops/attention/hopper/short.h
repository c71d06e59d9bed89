// Attention within short sequences on Hopper's matrix instructions: no sequence has more than 128
// tokens, so that one block of threads has all queries and keys of a head. Global memory holds no
// partial sums, and softmax sees a whole row at once. Documents share a block's rows where they
// fit. For encoders, whose samples are short and whose attention has dropout. The formulas are
// those of hopper.h, with M, dropout's mask:
//   O = (P M) V    dV = (P M)^T dO    dS = P (M dP - delta)
// P, P M and dS are rounded to 16 bits before the GEMMs that read them; everything else is float32.
// Results are repeatable.
//
// Element j of the mask's row of a query, whose statistic is stats[s], is element s L + j
// of philox.h: L is the length of all sequences, as in attention.h, or 128 for documents.
#pragma once

#include "src/device/cuda/cuda_stream.h"
#include "src/ops/attention/attention.h"

namespace tally::train::cuda {

// True for 16-bit types, heads of 64, no causal mask, no grouped queries, and sequences of up to
// 128 tokens, in multiples of 8, or documents that are known to be so short, on compute capability
// 9.0, unless the options turn it off (Fusions::attention).
bool short_attention_serves(const CudaCompute& c, const AttentionShape& shape, DType dtype);

// attention_forward() and attention_backward() for packed operands, but for q_sums. Neither needs
// scratch. Throw DeviceError where the driver cannot describe the tensors.
void short_attention_forward(CudaStream& s, const AttentionArgs& args);
void short_attention_backward(CudaStream& s, const AttentionArgs& args,
                              const AttentionGradients& gradients);

}  // namespace tally::train::cuda
