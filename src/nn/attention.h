// Self-attention between the projection of its input to Q, K and V and the projection of its
// output, which the residual norm after it computes (Branch). Under tensor parallelism the heads are
// divided: the first projection is column parallel, the second row parallel.
// Llama's projections have no biases; K and V may have fewer heads than Q (attention.h).
//   qkv = x w_qkv^T + b;  out = softmax(scale Q K^T + mask) V;  branch = out w_proj^T + b
#pragma once

#include <cstdint>
#include <string>

#include "src/nn/deferred_update.h"
#include "src/nn/linear.h"
#include "src/nn/residual_norm.h"
#include "src/ops/attention/attention.h"

namespace tally::train {

// The tensors that the layer saves for the backward pass; B x T tokens, H heads of D of Q and G of K
// and of V of this process.
struct AttentionActivations {
  Tensor qkv;    // [B,T,H+2G,D], rotated where positions are rotary
  Tensor out;    // [B T, H D]
  Tensor stats;  // [B,H,T]
};

// Sizes that do not change from block to block.
struct AttentionGeometry {
  int64_t batch = 0, tokens = 0;  // the most of a micro batch
  int64_t most_documents = 0;     // in a micro batch, of up to `tokens` each; 0: not known
  int64_t heads = 0, kv_heads = 0, head_dim = 0;  // heads of this process
  AttentionMask mask = AttentionMask::causal;
  Positions positions = Positions::learned;
  double rotary_base = 10000, rotary_fraction = 1;

  int64_t width() const { return heads * head_dim; }  // of this process's heads
  int64_t qkv_heads() const { return heads + 2 * kv_heads; }
  int64_t qkv_width() const { return qkv_heads() * head_dim; }
  // Of a micro batch of `batch` sequences of `tokens` tokens.
  AttentionShape shape(int64_t batch, int64_t tokens, const Dropout& dropout, bool documents) const;
};

class SelfAttention {
 public:
  // Parameters `qkv` and `projection`, with biases or without. `sums`[C]: memory of its own for the column sums of
  // the gradient at the projection's output (gradient type), zero before each backward pass.
  SelfAttention(const ParameterTable& table, const std::string& qkv, const std::string& projection,
                const AttentionGeometry& geometry, bool biases, int64_t layer, const Tensor& sums);

  // a.out from x[M,C]. `update`, where not null: the deferred update to finish before attention and
  // to start after it.
  void forward(LayerContext* c, const Tensor& x, const TokenLayout& layout, const Dropout& dropout,
               const DeferredUpdate* update, const AttentionActivations& a) const;
  Branch branch(const LayerContext& c, const AttentionActivations& a) const;
  // From the branch's gradient in `flow` to the gradient at x, in flow.normed.
  // `qkv_grad`[B,T,H+2G,D] is scratch. The residual norm above has filled the branch's
  // bias_gradient.
  void backward(const LayerContext& c, const Tensor& x, const TokenLayout& layout,
                const AttentionActivations& a, const Dropout& dropout, const Tensor& qkv_grad,
                const BackwardFlow& flow) const;

  const Linear& qkv() const { return qkv_; }
  const Linear& projection() const { return projection_; }

 private:
  AttentionArgs arguments(const LayerContext& c, const TokenLayout& layout,
                          const AttentionActivations& a, const Dropout& dropout) const;
  void backward_qkv_bias(const LayerContext& c, const Dropout& dropout, const Tensor& dqkv) const;
  bool has_biases() const { return qkv_.bias.value.defined(); }
  bool rotary_positions() const { return geometry_.positions == Positions::rotary; }

  Linear qkv_, projection_;
  AttentionGeometry geometry_;
  int64_t layer_ = 0;
  Tensor sums_;
};

}  // namespace tally::train
