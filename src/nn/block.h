// A transformer block with the norm before each branch (GPT; pre-norm):
//   r_mid = r_in + projection(attention(ln_1(r_in))),  r_out = r_mid + mlp(ln_2(r_mid))
// or after each addition (BERT; post-norm):
//   y_mid = ln(y_in + projection(attention(y_in))),  y_out = ln(y_mid + mlp(y_mid))
// In both, a norm follows each addition, and a branch reads a norm's output y. They differ in the
// addition's other operand: the sum r before the norm, or its output y. So a block has the norm
// before its attention, which in a post-norm model is the last one of the block before it or that
// of the embeddings, and the norm before its MLP. The last addition belongs to the norm that
// follows it: the next block's first norm or the model's last norm. So forward() ends at the MLP's
// branch, and the last sum is the next NormActivations::r.
#pragma once

#include <string>

#include "src/device/arena.h"
#include "src/nn/attention.h"
#include "src/nn/mlp.h"
#include "src/nn/residual_norm.h"

namespace tally::train {

// What a block keeps for its backward pass, what the blocks of a stage share, and what is computed
// again before the backward pass. M = tokens of the micro batch, C = hidden, F = ffn.
// With sequence parallelism the tensors of norms have this process's part of the tokens; under
// tensor parallelism attention has its heads and the MLP its share of F.
//
//   tensor                        none    selective   full
//   in.r [M,C]                    kept    kept        kept
//   in.mean, in.rstd [M]          kept    kept        shared, again
//   in.y [M,C]                    kept    shared,     shared, again
//                                         again
//   attention.qkv, out, stats     kept    kept        shared, again
//   mid.r, mid.mean, mid.rstd     kept    kept        shared, again
//   mid.y [M,C]                   kept    shared,     shared, again
//                                         again
//   mlp.saved [M,F]               kept    kept        shared, again
//   mlp.act [M,F]                 kept    shared,     shared, again
//                                         again
struct BlockActivations {
  NormActivations in;
  AttentionActivations attention;
  NormActivations mid;
  MlpActivations mlp;
};

// Names of its parameters.
struct BlockNames {
  std::string in_norm, qkv, projection, mid_norm, fc, mlp_projection;
};

struct BlockSizes {
  AttentionGeometry attention;
  int64_t hidden = 0;
  int64_t ffn = 0;         // of this process
  bool llama = false;      // RMSNorm, SwiGLU and no biases
  int64_t part_count = 1;  // processes that divide the tokens outside of GEMMs and attention
  DType type = DType::f32;
  Recompute recompute = Recompute::none;
  bool post_norm = false;

  int64_t tokens() const { return attention.batch * attention.tokens; }  // of a micro batch
  int64_t part() const { return tokens() / part_count; }                 // of them, on this process
  int64_t fc_width() const { return llama ? 2 * ffn : ffn; }             // of the MLP's first GEMM
};

// The activations that the blocks of a stage share, once for all of them.
BlockActivations plan_shared_activations(const BlockSizes& sizes, Arena* arena);
// A block's own activations, without the shared ones.
BlockActivations plan_block_activations(const BlockSizes& sizes, const BlockActivations& shared,
                                        Arena* arena);

// The part of planned activations that a micro batch of fewer tokens uses. Without sequence
// parallelism.
BlockActivations first_tokens(const BlockActivations& planned, const TokenLayout& layout);
NormActivations first_tokens(const NormActivations& planned, int64_t tokens);

class Block {
 public:
  // `sums` as SelfAttention's.
  Block(const ParameterTable& table, const BlockNames& names, const BlockSizes& sizes,
        double epsilon, const MlpGelu& gelu, int64_t layer, const Tensor& sums);

  const ResidualNorm& in_norm() const { return in_norm_; }
  ResidualNorm& in_norm() { return in_norm_; }
  // From a.in to the MLP's branch. `scratch`[M,C] as ResidualNorm's; `layout` and
  // `update` as SelfAttention's.
  void forward(LayerContext* c, const TokenLayout& layout, const Dropout& dropout,
               const DeferredUpdate* update, const Tensor& scratch,
               const BlockActivations& a) const;
  Branch branch(const BlockActivations& a) const { return mlp_.branch(a.mlp); }
  // The operand that the branch is added to.
  const Tensor& residual(const BlockActivations& a) const { return post_norm_ ? a.mid.y : a.mid.r; }
  // Recomputes what the block shares with the others, from what it kept.
  void recompute(LayerContext* c, const TokenLayout& layout, const Dropout& dropout,
                 const Tensor& scratch, const BlockActivations& a) const;
  // From the gradient at the sum r after the block to that at the sum before it, both in
  // flow.residual. `below`: the branch that was
  // added to give r_in; null where there is none.
  void backward(const LayerContext& c, const TokenLayout& layout, const Dropout& dropout,
                const BlockActivations& a, const Branch* below, const Tensor& qkv_grad,
                const BackwardFlow& flow) const;

  const SelfAttention& attention() const { return attention_; }
  const Mlp& mlp() const { return mlp_; }

 private:
  ResidualNorm in_norm_, mid_norm_;
  SelfAttention attention_;
  Mlp mlp_;
  Recompute recompute_;
  bool post_norm_;
};

}  // namespace tally::train
