// A transformer block with the norm before each branch (GPT; pre-norm):
//   r_mid = r_in + attention(ln_1(r_in)),  r_out = r_mid + mlp(ln_2(r_mid))
// or after each addition (BERT; post-norm):
//   y_mid = ln(y_in + attention(y_in)),  y_out = ln(y_mid + mlp(y_mid))
// In both, a norm follows each addition (NormedSum), and a branch reads a norm's output y. They
// differ in the addition's other operand: the sum r before the norm, or its output y. So a block
// has the norm before its attention, which in a post-norm model is the last one of the block before
// it or that of the embeddings, and the norm before its MLP. It writes to the sum and norm that
// follow it: the next block's first norm, the model's last norm, or the end of a pipeline's stage.
#pragma once

#include <algorithm>
#include <array>

#include "src/device/arena.h"
#include "src/nn/attention.h"
#include "src/nn/mlp.h"
#include "src/nn/norm.h"

namespace tally::train {

// The activations that a block keeps for its backward pass, those that the blocks of a stage share,
// and what is computed again before the backward pass. M = tokens of the micro batch, C = hidden, F
// = ffn. With sequence parallelism the tensors of norms have this process's part of the tokens;
// under tensor parallelism attention has its heads and the MLP its share of F.
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

struct BlockSizes {
  BlockSpec spec;
  AttentionGeometry attention;
  int64_t hidden = 0;
  int64_t ffn = 0;         // this process's
  int64_t part_count = 1;  // processes that divide the tokens outside of GEMMs and attention
  DType type = DType::f32;
  Recompute recompute = Recompute::none;
  int64_t shards = 1;  // processes that divide the GEMMs
  bool fp8 = false;    // some blocks are in FP8

  bool post_norm() const { return spec.norm_position == NormPosition::after; }
  int64_t tokens() const { return attention.batch * attention.tokens; }  // tokens of a micro batch
  int64_t part() const { return tokens() / part_count; }                 // this process's part
  int64_t fc_width() const { return spec.gated() ? 2 * ffn : ffn; }      // the MLP's first GEMM's
  // The widest input and output of any of the block's GEMMs.
  int64_t widest_input() const { return std::max({hidden, attention.width(), ffn}); }
  int64_t widest_output() const { return std::max({hidden, attention.qkv_width(), fc_width()}); }
};

// The activations that the blocks of a stage share, once for all of them.
BlockActivations make_shared_activations(const BlockSizes& sizes, Arena* arena);
// A block's own activations, without the shared ones.
BlockActivations make_block_activations(const BlockSizes& sizes, const BlockActivations& shared,
                                        Arena* arena);

// The part of reserved activations that a micro batch of fewer tokens uses. Without sequence
// parallelism.
BlockActivations first_tokens(const BlockActivations& reserved, const Sequences& sequences);
NormActivations first_tokens(const NormActivations& reserved, int64_t tokens);

class Block {
 public:
  // `sums` as SelfAttention's.
  Block(const ParameterTable& table, const BlockSizes& sizes, double epsilon,
        const ActivationForm& activation, int64_t layer, const Tensor& sums);

  const Norm& in_norm() const { return in_norm_; }
  Norm& in_norm() { return in_norm_; }
  // The sum and norm that the block reads, which what is below it writes.
  NormedSum in(const BlockActivations& a) const { return {&in_norm_, a.in, !post_norm_}; }
  // Goes from a.in to `out`.
  void forward(LayerContext* c, const BlockActivations& a, const NormedSum& out) const;
  // Recomputes what the block shares with the others, from what it kept.
  void recompute(LayerContext* c, const BlockActivations& a) const;
  // Goes from the gradients at `out` to those at its sum and at the MLP's output. After it nothing
  // reads what `out` shares with the block's activations.
  void backward_out(const LayerContext& c, const NormedSum& out, const BackwardFlow& flow) const {
    mlp_.projection().backward_sum(c, out, flow);
  }
  // Goes on from there to the gradients at a.in's y (flow.normed) and r (flow.residual).
  void backward(const LayerContext& c, const BlockActivations& a, const BackwardFlow& flow) const;

  // Computes its GEMMs in FP8 from now on, with weights cast to memory of `arena`.
  void keep_in_fp8(const Fp8Scratch& form, Arena* arena);

  const SelfAttention& attention() const { return attention_; }
  const Mlp& mlp() const { return mlp_; }

 private:
  NormedSum mid(const BlockActivations& a) const { return {&mid_norm_, a.mid, !post_norm_}; }
  // The operand of the addition after a branch that reads a.y.
  const Tensor& residual(const NormActivations& a) const { return post_norm_ ? a.y : a.r; }

  Norm in_norm_, mid_norm_;
  SelfAttention attention_;
  Mlp mlp_;
  Recompute recompute_;
  bool post_norm_;
};

}  // namespace tally::train
