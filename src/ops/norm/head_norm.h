// RMSNorm of each head of Q and of K, in place, before the rotation (Qwen 3's QK norm; the idea:
// Dehghani et al., arXiv:2302.05442).
//   qkv[B,T,H+2G,D], the compute type (f64, f32, bf16, f16): V is left as it is
//   q, k [D], the compute type: the weights, which all heads of Q and all of K share
//   raw[B T,H+G,D]: the heads as they were, for the backward pass; rstd[B T,H+G]: f32 (f64 for f64)
// Sums have a fixed order. Versions: head_norm_cpu.cc and head_norm.cu, every type; on a GPU a warp
// a head, D up to 256 (DeviceError beyond).
#pragma once

#include "src/ops/operation.h"

namespace tally::train {

struct HeadNormWeights {
  In q, k;
  int64_t kv_heads = 0;  // G
  double epsilon = 0;
};
struct SavedHeads {
  Out raw, rstd;
};
inline Operation<void(Stream& s, Out qkv, const HeadNormWeights& weights, const SavedHeads& saved)>
    head_norm_forward{"head_norm_forward"};

// dqkv becomes the gradient at the heads before the norm; dq, dk [D], the gradient type, are added
// to.
struct HeadNormGradients {
  Out dqkv, dq, dk;
};
inline Operation<void(Stream& s, const HeadNormWeights& weights, const SavedHeads& saved,
                      const HeadNormGradients& out)>
    head_norm_backward{"head_norm_backward"};

}  // namespace tally::train
