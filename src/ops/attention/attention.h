// Scaled-dot-product attention over packed projections.
//   qkv[B,T,3,H,D] (rows of the QKV product: all Q heads, then K, then V), out[B,T,H,D]
//   stats[B,H,T] f32 (f64 for f64): log-sum-exp of each row's scaled scores, kept for the backward
//   pass
// P = softmax(scale Q K^T + mask); out = P V.
#pragma once

#include "src/device/compute_options.h"
#include "src/device/step_state.h"
#include "src/device/tensor.h"

namespace tally::train {

struct AttentionShape {
  int64_t batch = 0, tokens = 0, heads = 0, head_dim = 0;
  bool causal = true;
  double scale = 0;    // 1 / sqrt(head_dim)
  double dropout = 0;  // probability, element ((b H + h) T + i) T + j of `seed`'s mask (philox.h)
};

// Which kernels serve a shape on a device: "hopper", "cudnn", "flash", "flash-float64",
// "flash-tf32x3", "unfused", "aten". Logged once a run.
const char* attention_backend(const Compute& c, const AttentionShape& shape, DType dtype);

// Bytes of scratch that both directions need (shared by all layers).
size_t attention_workspace(const Compute& c, const AttentionShape& shape, DType dtype);

void attention_forward(const Compute& c, const AttentionShape& shape, const Tensor& qkv,
                       const Tensor& out, const Tensor& stats, const Tensor& workspace,
                       DropoutSeed seed);
// dqkv is written, not added to. q_sums[H D] += the column sums of dQ where it is defined (the
// gradient type): the gradient of Q's bias.
void attention_backward(const Compute& c, const AttentionShape& shape, const Tensor& qkv,
                        const Tensor& out, const Tensor& stats, const Tensor& dout,
                        const Tensor& dqkv, const Tensor& workspace, DropoutSeed seed,
                        const Tensor& q_sums = Tensor());

// Rotary position embedding (rotate-half, `fraction` of the head's dimensions) in place on Q and K
// of qkv. positions[B,T]: i32; undefined: 0 ... T - 1 in each row. `inverse` rotates back: the
// backward pass applied to dqkv.
void rotary(Stream& s, const Tensor& qkv, const Tensor& positions, double base, double fraction,
            bool inverse);

}  // namespace tally::train
