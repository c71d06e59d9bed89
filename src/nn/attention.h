// Self-attention from a norm's output to the residual stream. Under tensor parallelism the heads
// are divided: the first projection is column parallel, the second row parallel.
// Llama's projections have no biases; K and V may have fewer heads than Q (attention.h).
//   qkv = x w_qkv^T + b;  out = softmax(scale Q K^T + mask) V;  r = residual + dropout(out w_proj^T + b)
#pragma once

#include <array>
#include <cstdint>

#include "src/nn/projection.h"
#include "src/ops/attention/attention.h"
#include "src/ops/norm/head_norm.h"

namespace tally::train {

// The tensors that the layer saves for the backward pass; B x T tokens, H heads of D of Q and G of
// K and of V of this process.
struct AttentionActivations {
  Tensor qkv;    // [B,T,H+2G,D], rotated where positions are rotary
  Tensor out;    // [B T, H D]
  Tensor stats;  // [B,H,T]
  // QK norm: [B T,H+G,D] the heads of Q and K before it, [B T,H+G].
  Tensor raw, rstd;
  Tensor x_amaxes, out_amaxes;  // LinearInput's, in FP8
};

// Sizes that do not change from block to block.
struct AttentionGeometry {
  int64_t batch = 0, tokens = 0;  // the most of a micro batch
  int64_t most_documents = 0;     // in a micro batch, of up to `tokens` each; 0: not known
  int64_t heads = 0, kv_heads = 0, head_dim = 0;  // heads of this process
  AttentionMask mask = AttentionMask::causal;
  Positions positions = Positions::learned;
  RotaryAngles rotary_angles;
  double rotary_fraction = 1;
  bool qk_norm = false;
  double epsilon = 0;  // that norm's

  int64_t width() const { return heads * head_dim; }  // columns of this process's heads
  int64_t qkv_heads() const { return heads + 2 * kv_heads; }
  int64_t qkv_width() const { return qkv_heads() * head_dim; }
  // The shape of a micro batch of `batch` sequences of `tokens` tokens.
  AttentionShape shape(int64_t batch, int64_t tokens, const Dropout& dropout, bool documents) const;
};

class SelfAttention {
 public:
  // `sums`[C] as Projection's.
  SelfAttention(const ParameterTable& table, const AttentionGeometry& geometry, int64_t layer,
                const Tensor& sums);

  // Goes from x[M,C] to `sum`. The deferred update, where there is one, finishes before attention
  // and starts its next piece after it.
  void forward(LayerContext* c, const Tensor& x, const AttentionActivations& a,
               const Tensor& residual, const NormedSum& sum) const;
  // Goes from the gradient at the projection's output in `flow` (Projection::backward_sum) to the
  // gradient at x, in flow.normed.
  void backward(const LayerContext& c, const Tensor& x, const AttentionActivations& a,
                const BackwardFlow& flow) const;

  const Linear& qkv() const { return qkv_; }
  std::array<Linear*, 2> matrices() { return {&qkv_, &projection_}; }
  const Projection& projection() const { return projection_; }

 private:
  AttentionArgs arguments(const LayerContext& c, const AttentionActivations& a) const;
  void backward_qkv_bias(const LayerContext& c, const Tensor& dqkv) const;
  bool has_biases() const { return qkv_.bias.value.defined(); }
  bool rotary_positions() const { return geometry_.positions == Positions::rotary; }
  RotaryPositions rotation(const Sequences& sequences) const {
    return {sequences.positions, geometry_.kv_heads, geometry_.rotary_angles,
            geometry_.rotary_fraction};
  }

  HeadNormWeights head_norm() const {
    return {q_norm_.value, k_norm_.value, geometry_.kv_heads, geometry_.epsilon};
  }

  Linear qkv_;
  ParamGrad q_norm_, k_norm_;  // undefined without QK norm
  Projection projection_;
  AttentionGeometry geometry_;
  int64_t layer_ = 0;
};

}  // namespace tally::train
