// The explicit GPT: pre-LayerNorm blocks on a residual stream, forward and backward written in
// operations over memory planned once.
//
//   r_0 = embeddings;  block l:  r_mid = r_in + proj(attention(ln_1(r_in))),
//                                r_out = r_mid + mlp(ln_2(r_mid)) = r_in of block l + 1
//   loss = cross entropy(ln_f(r_L) W_head^T)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/model/model.h"
#include "src/device/arena.h"
#include "src/ops/attention/attention.h"
#include "src/ops/linear/linear.h"
#include "src/device/side_stream.h"

namespace tally::train {

// A weight and where its gradient goes.
struct ParamGrad {
  Tensor value, gradient;
};

struct BlockParameters {
  ParamGrad ln1_weight, ln1_bias, qkv_weight, qkv_bias, proj_weight, proj_bias;
  ParamGrad ln2_weight, ln2_bias, fc_weight, fc_bias, out_weight, out_bias;
};

// What one block leaves for its backward pass. Under recomputation blocks share some of these
// (selective: ln1, ln2, act) or all but the first (full), and the backward pass computes them
// again.
//   M = tokens of the micro batch, C = hidden, F = ffn
struct BlockActivations {
  Tensor r_in;               // [M,C] residual stream before the block
  Tensor ln1, mean1, rstd1;  // [M,C], [M], [M]
  Tensor qkv;                // [B,T,3,H,D], rotated where positions are rotary
  Tensor att, stats;         // [M,C], [B,H,T]
  Tensor r_mid;              // [M,C] residual stream between attention and MLP
  Tensor ln2, mean2, rstd2;  // [M,C], [M], [M]
  // [M,F] what is kept of GELU's input (saved_gelu_), and GELU's output. The gradient at the input
  // takes the place of one of them.
  Tensor pre, act;
};

class Gpt final : public Model {
 public:
  Gpt(const Config& config, ParameterTable& table, const Compute& compute);
  void forward_backward(const Batch& batch, double weight, DropoutSeed dropout,
                        StepState* state) override;
  void evaluate(const Batch& batch, double weight, StepState* state) override;
  size_t activation_bytes() const override { return arena_.bytes(); }
  DeferredParameters deferred_parameters() const override;

 private:
  // Where dropout happens; each place of each micro batch draws its own mask.
  enum Site : uint64_t { embedding_site = 0, attention_site = 1, proj_site = 2, mlp_site = 3 };
  // One micro batch's randomness: zero probabilities without dropout.
  struct Dropout {
    double hidden = 0, attention = 0;
    DropoutSeed seed;
    DropoutSeed at(Site site, size_t layer = 0) const;
  };

  // The norm that follows a residual addition, and where both results go.
  struct Joint {
    const ParamGrad &weight, &bias;
    const Tensor &r, &y, &mean, &rstd;
  };

  void bind_parameters(const ParameterTable& table);
  void plan();
  BlockActivations plan_block(const BlockActivations* shared);
  void check(const Batch& batch) const;
  AttentionShape attention_shape(const Dropout& dropout) const;
  double loss_factor(const Batch& batch, double weight) const;

  // gpt_forward.cc: fill the activations up to the final norm's output, which lies in
  // residual_grad_. `updates`: late parameters are updated on the way.
  void forward(const Batch& batch, const Dropout& dropout, bool updates);
  void attention_half(size_t l, const Dropout& dropout, bool updates = false);
  void start_update(size_t l);
  void finish_update();
  void join(const Tensor& x, const ParamGrad& w, const ParamGrad& b, const Tensor& residual,
            double dropout, DropoutSeed seed, const Joint& next);
  void mlp_up(size_t l);
  void recompute(size_t l, const Dropout& dropout);

  // gpt_backward.cc
  void head(const Batch& batch, double factor, bool backward, StepState* state);
  void start_gradients(bool first);
  void backward(const Batch& batch, const Dropout& dropout);
  void backward_mlp(size_t l, const Dropout& dropout);
  void backward_attention(size_t l, const Dropout& dropout);
  void backward_qkv_bias(size_t l, const Dropout& dropout, const Tensor& dqkv);
  Tensor branch_bias(size_t l) const;
  void weight_gradient(const Tensor& dy, const Tensor& x, const ParamGrad& weight, bool accumulate);

  const ModelConfig config_;
  const int64_t batch_, tokens_;  // of a micro batch
  const Recompute recompute_;
  const Fusions fusions_;
  SavedGelu saved_gelu_ = SavedGelu::input;  // what lies in BlockActivations::pre
  const DType type_;
  Compute compute_;  // of the main stream
  Stream& stream_;
  Arena arena_;
  const int update_sms_;  // of late parameters, beside the forward pass
  const bool weights_beside_;              // products of weights' gradients run on side_
  const std::unique_ptr<SideStream> side_;

  bool accumulate_ = true;  // the micro batch in work adds to the gradients of matrices
  Tensor gradients_;        // all of them, flat
  int64_t decayed_ = 0;     // those of matrices come first

  ParamGrad token_embedding_, position_embedding_, head_, final_weight_, final_bias_;
  std::vector<BlockParameters> parameters_;
  std::vector<int64_t> late_;  // the update beside block l is that of [late_[l], late_[l + 1])
  std::vector<BlockActivations> blocks_;
  Tensor r_final_, final_mean_, final_rstd_;
  // Scratch, shared by all blocks. Some serve twice, where their lives do not overlap:
  Tensor residual_grad_;  // [M,C] gradient of the residual stream; in the head: ln_f's output
  Tensor branch_;  // [M,C] forward: what a branch adds; backward: the gradient at a norm's output
  Tensor branch_grad_;  // [M,C] masked gradient of what a branch added; only with dropout
  Tensor qkv_grad_;     // [B,T,3,H,D]; the same memory as logits_
  Tensor logits_;       // [rows,Vp]: the head works on so many tokens at once
  Tensor losses_;       // [M]
  Tensor shares_;       // [rows] of linear_cross_entropy()
  Tensor
      proj_sums_;  // [layers,C] column sums of the gradient at each attention projection's output
  Tensor workspace_;
};

}  // namespace tally::train
