#include <algorithm>

#include "src/model/gpt.h"
#include "src/ops/embedding/embedding.h"
#include "src/ops/linear/linear.h"
#include "src/ops/loss/loss.h"
#include "src/ops/norm/norm.h"

namespace tally::train {

// Products of weights' gradients run beside the rest (side_). Each piece of work there ends before
// what it reads is overwritten: joins stand where that happens.

// Logits and loss, some tokens at a time; with `backward` the gradient at ln_f's output (to
// branch_) and the head's weight gradient. ln_f's output is scratch afterwards.
void Gpt::head(const Batch& batch, double factor, bool backward, StepState* state) {
  const int64_t m = batch_ * tokens_, step = logits_.dim(0);
  const Tensor targets = batch.targets.view({m});
  const Tensor& normal = residual_grad_;
  for (int64_t first = 0; first < m; first += step) {
    const int64_t rows = std::min(step, m - first);
    const Tensor logits = logits_.rows(0, rows);
    const Tensor x = normal.rows(first, rows), dx = branch_.rows(first, rows);
    const Tensor right = targets.rows(first, rows), losses = losses_.rows(first, rows);
    const Tensor shares = shares_.rows(0, rows);
    const bool joint = backward && fusions_.head &&
                       linear_cross_entropy_pays(compute_, x, head_.value, right, config_.vocabulary,
                                                 losses, shares, logits);
    if (joint) {
      linear_cross_entropy(compute_, x, head_.value, right, config_.vocabulary, factor, state,
                           losses, shares, logits);
    } else {
      linear_forward(compute_, x, head_.value, Tensor(), logits);
      cross_entropy(stream_, logits, right, config_.vocabulary, backward, factor,
                    backward ? state : nullptr, losses);
    }
    if (!backward) continue;
    weight_gradient(logits, x, head_, accumulate_ || first > 0);
    linear_backward_input(compute_, logits, head_.value, dx);
    if (joint) scale_rows(stream_, shares, dx);
    side_->wait();
  }
  add_losses(stream_, losses_, factor, state);
}

// A step's first micro batch finds the last step's gradients. Products overwrite those of matrices;
// what is summed in another way starts at zero.
void Gpt::start_gradients(bool first) {
  accumulate_ = !first;
  if (fusions_.qkv_bias) stream_.fill_zero(proj_sums_.data, proj_sums_.bytes());
  if (!first) return;
  const auto clear = [&](const Tensor& t) { stream_.fill_zero(t.data, t.bytes()); };
  clear(gradients_.rows(decayed_, gradients_.numel() - decayed_));
  if (position_embedding_.gradient.defined()) clear(position_embedding_.gradient);
  if (!config_.tied_embeddings) clear(token_embedding_.gradient);
}

// Where the column sums of the gradient at block l's projection go.
Tensor Gpt::branch_bias(size_t l) const {
  if (!fusions_.bias_sums) return {};
  const auto row = static_cast<int64_t>(l);
  return fusions_.qkv_bias ? proj_sums_.rows(row, 1).view({config_.hidden})
                           : parameters_[l].proj_bias.gradient;
}

void Gpt::backward(const Batch& batch, const Dropout& dropout) {
  const size_t last = blocks_.size() - 1;
  const bool masked = dropout.hidden > 0;
  layernorm_backward(stream_, branch_, r_final_, final_weight_.value, final_mean_, final_rstd_,
                     Tensor(), residual_grad_, final_weight_.gradient, final_bias_.gradient,
                     dropout.hidden, dropout.at(mlp_site, last), masked ? branch_grad_ : Tensor(),
                     workspace_,
                     fusions_.bias_sums ? parameters_[last].out_bias.gradient : Tensor());
  for (size_t l = blocks_.size(); l-- > 0;) {
    if (recompute_ != Recompute::none) side_->wait();  // blocks share what the products read
    recompute(l, dropout);
    backward_mlp(l, dropout);
    backward_attention(l, dropout);
    if (reports_gradients()) side_->wait();
    // Against the order in which they lie in memory, as the blocks come.
    const BlockParameters& p = parameters_[l];
    for (const ParamGrad* w : {&p.out_weight, &p.fc_weight, &p.proj_weight, &p.qkv_weight})
      gradient_is_final(w->gradient);
  }
  embedding_backward(stream_, batch.ids, residual_grad_, dropout.hidden, dropout.at(embedding_site),
                     token_embedding_.gradient, position_embedding_.gradient, workspace_);
  side_->wait();
}

// Beside what follows, until side_->wait().
void Gpt::weight_gradient(const Tensor& dy, const Tensor& x, const ParamGrad& weight,
                          bool accumulate) {
  const auto product = [&](Stream& s) {
    linear_backward_weight(Compute(s, compute_.options), dy, x, weight.gradient, Tensor(),
                           accumulate);
  };
  if (weights_beside_) {
    side_->launch(product);
  } else {
    product(stream_);
  }
}

// From the gradient of r_out to that of r_mid, both in residual_grad_.
void Gpt::backward_mlp(size_t l, const Dropout& dropout) {
  const BlockParameters& p = parameters_[l];
  const BlockActivations& a = blocks_[l];
  const bool masked = dropout.hidden > 0;
  const Tensor& dout = masked ? branch_grad_ : residual_grad_;
  if (!fusions_.bias_sums) linear_backward_bias(stream_, dout, 0, p.out_bias.gradient);
  weight_gradient(dout, a.act, p.out_weight, accumulate_);
  // GELU's output has had its last reader, unless that runs beside.
  const Tensor& dpre = weights_beside_ ? a.pre : a.act;
  linear_backward_input_gelu(compute_, dout, p.out_weight.value, a.pre, dpre, p.fc_bias.gradient,
                             saved_gelu_);
  weight_gradient(dpre, a.ln2, p.fc_weight, accumulate_);
  linear_backward_input(compute_, dpre, p.fc_weight.value, branch_);
  side_->wait(1);  // the norm overwrites dout; what reads dpre may go on
  layernorm_backward(stream_, branch_, a.r_mid, p.ln2_weight.value, a.mean2, a.rstd2,
                     residual_grad_, residual_grad_, p.ln2_weight.gradient, p.ln2_bias.gradient,
                     dropout.hidden, dropout.at(proj_site, l), masked ? branch_grad_ : Tensor(),
                     workspace_, branch_bias(l));
}

// From the gradient of r_mid to that of r_in.
void Gpt::backward_attention(size_t l, const Dropout& dropout) {
  const BlockParameters& p = parameters_[l];
  const BlockActivations& a = blocks_[l];
  const int64_t m = batch_ * tokens_;
  // Block 0 has the embeddings below it, not a branch.
  const bool masked = dropout.hidden > 0, branch_below = masked && l > 0;
  const Tensor& dproj = masked ? branch_grad_ : residual_grad_;
  if (!fusions_.bias_sums) {
    linear_backward_bias(
        stream_, dproj, 0,
        fusions_.qkv_bias ? proj_sums_.rows(static_cast<int64_t>(l), 1) : p.proj_bias.gradient);
  }
  weight_gradient(dproj, a.att, p.proj_weight, accumulate_);
  linear_backward_input(compute_, dproj, p.proj_weight.value, branch_);
  const auto heads = [&](const Tensor& t) {
    return t.view({batch_, tokens_, config_.heads, config_.head_dim()});
  };
  const bool rotated = config_.positions == Positions::rotary;
  attention_backward(
      compute_, attention_shape(dropout), a.qkv, heads(a.att), a.stats, heads(branch_), qkv_grad_,
      workspace_, dropout.at(attention_site, l),
      fusions_.qkv_bias && !rotated ? p.qkv_bias.gradient.rows(0, config_.hidden) : Tensor());
  if (rotated) {
    rotary(stream_, qkv_grad_, config_.rotary_base, config_.rotary_fraction, true);
  }
  const Tensor dqkv = qkv_grad_.view({m, 3 * config_.hidden});
  backward_qkv_bias(l, dropout, dqkv);
  weight_gradient(dqkv, a.ln1, p.qkv_weight, accumulate_);
  linear_backward_input(compute_, dqkv, p.qkv_weight.value, branch_);
  side_->wait(1);  // the norm overwrites dproj; what reads dqkv may go on
  layernorm_backward(stream_, branch_, a.r_in, p.ln1_weight.value, a.mean1, a.rstd1, residual_grad_,
                     residual_grad_, p.ln1_weight.gradient, p.ln1_bias.gradient, dropout.hidden,
                     branch_below ? dropout.at(mlp_site, l - 1) : DropoutSeed(),
                     branch_below ? branch_grad_ : Tensor(), workspace_,
                     fusions_.bias_sums && l > 0 ? parameters_[l - 1].out_bias.gradient : Tensor());
}

// The bias's gradient is the column sums of dqkv. For K they are 0 before rotation: a bias that all
// keys share moves all scores of a row alike, which softmax does not see. For V without dropout
// they are the column sums of the gradient at the attention's output, since each row of
// probabilities sums to 1; and those follow from the sums at the projection's output. Q's were
// summed on the way, or are read after rotation.
void Gpt::backward_qkv_bias(size_t l, const Dropout& dropout, const Tensor& dqkv) {
  const BlockParameters& p = parameters_[l];
  const int64_t c = config_.hidden;
  const bool rotated = config_.positions == Positions::rotary;
  if (!fusions_.qkv_bias) return linear_backward_bias(stream_, dqkv, 0, p.qkv_bias.gradient);
  const auto part = [&](int64_t first, int64_t count) {
    return p.qkv_bias.gradient.rows(first * c, count * c);
  };
  if (rotated) linear_backward_bias(stream_, dqkv, 0, part(0, 2));
  const Tensor sums = proj_sums_.rows(static_cast<int64_t>(l), 1).view({c});
  const bool through = dropout.attention == 0;
  if (!through) linear_backward_bias(stream_, dqkv, 2 * c, part(2, 1));
  linear_backward_bias_input(stream_, sums, p.proj_weight.value, p.proj_bias.gradient,
                             through ? part(2, 1) : Tensor());
}

}  // namespace tally::train
