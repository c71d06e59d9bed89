#include "src/model/gpt.h"
#include "src/ops/embedding/embedding.h"
#include "src/ops/linear/linear.h"
#include "src/ops/norm/norm.h"

namespace tally::train {

// Every residual addition is fused with the norm that follows it: a block's last addition with the
// next block's ln_1, the last block's with ln_f.
void Gpt::forward(const Batch& batch, const Dropout& dropout, bool updates) {
  const double epsilon = config_.layernorm_epsilon;
  BlockActivations& first = blocks_.front();
  embedding_forward(stream_, batch.ids, token_embedding_.value, position_embedding_.value,
                    dropout.hidden, dropout.at(embedding_site), first.r_in);
  layernorm_forward(stream_, first.r_in, parameters_[0].ln1_weight.value,
                    parameters_[0].ln1_bias.value, epsilon, first.ln1, first.mean1, first.rstd1);
  for (size_t l = 0; l < blocks_.size(); ++l) {
    const BlockParameters& p = parameters_[l];
    const BlockActivations& a = blocks_[l];
    attention_half(l, dropout, updates);
    mlp_up(l);
    const auto to = [&](const Joint& next) {
      join(a.act, p.out_weight, p.out_bias, a.r_mid, dropout.hidden, dropout.at(mlp_site, l), next);
    };
    if (l + 1 == blocks_.size()) {
      to({final_weight_, final_bias_, r_final_, residual_grad_, final_mean_, final_rstd_});
      if (updates) finish_update();
    } else {
      const BlockParameters& q = parameters_[l + 1];
      const BlockActivations& next = blocks_[l + 1];
      to({q.ln1_weight, q.ln1_bias, next.r_in, next.ln1, next.mean1, next.rstd1});
    }
  }
}

// r = residual + dropout(x w^T + b), y = layernorm(r). Without dropout the product adds the
// residual, which saves writing and reading what the branch adds.
void Gpt::join(const Tensor& x, const ParamGrad& w, const ParamGrad& b, const Tensor& residual,
               double dropout, DropoutSeed seed, const Joint& next) {
  const double epsilon = config_.layernorm_epsilon;
  if (dropout == 0 && fusions_.residual) {
    linear_forward(compute_, x, w.value, b.value, next.r, residual);
    layernorm_forward(stream_, next.r, next.weight.value, next.bias.value, epsilon, next.y,
                      next.mean, next.rstd);
    return;
  }
  linear_forward(compute_, x, w.value, b.value, branch_);
  residual_layernorm_forward(stream_, residual, branch_, next.weight.value, next.bias.value,
                             epsilon, dropout, seed, next.r, next.y, next.mean, next.rstd);
}

// From ln1 to r_mid and ln2.
void Gpt::attention_half(size_t l, const Dropout& dropout, bool updates) {
  const BlockParameters& p = parameters_[l];
  const BlockActivations& a = blocks_[l];
  const int64_t m = batch_ * tokens_;
  linear_forward(compute_, a.ln1, p.qkv_weight.value, p.qkv_bias.value,
                 a.qkv.view({m, 3 * config_.hidden}));
  if (config_.positions == Positions::rotary) {
    rotary(stream_, a.qkv, config_.rotary_base, config_.rotary_fraction, false);
  }
  if (updates) finish_update();
  attention_forward(compute_, attention_shape(dropout), a.qkv,
                    a.att.view({batch_, tokens_, config_.heads, config_.head_dim()}), a.stats,
                    workspace_, dropout.at(attention_site, l));
  if (updates) start_update(l);
  join(a.att, p.proj_weight, p.proj_bias, a.r_in, dropout.hidden, dropout.at(proj_site, l),
       {p.ln2_weight, p.ln2_bias, a.r_mid, a.ln2, a.mean2, a.rstd2});
}

// Beside block l's products after its attention, and the next block's before it: attention takes
// all sms, products leave some.
void Gpt::start_update(size_t l) {
  const int64_t first = late_[l], last = late_[l + 1];
  if (first == last) return;
  const int few = update_sms_;
  side_->launch([&](Stream& s) { deferred_update()(s, first, last, few); });
  compute_.options.reserved_sms = few;
}

void Gpt::finish_update() {
  side_->wait();
  compute_.options.reserved_sms = 0;
}

void Gpt::mlp_up(size_t l) {
  const BlockActivations& a = blocks_[l];
  linear_gelu_forward(compute_, a.ln2, parameters_[l].fc_weight.value, parameters_[l].fc_bias.value,
                      a.pre, a.act, saved_gelu_);
}

// Puts back what the blocks share, before the backward pass of block l.
void Gpt::recompute(size_t l, const Dropout& dropout) {
  if (recompute_ == Recompute::none) return;
  const BlockParameters& p = parameters_[l];
  const BlockActivations& a = blocks_[l];
  // The last block's are still there.
  if (l + 1 == blocks_.size()) return;
  layernorm_forward(stream_, a.r_in, p.ln1_weight.value, p.ln1_bias.value,
                    config_.layernorm_epsilon, a.ln1, a.mean1, a.rstd1);
  if (recompute_ == Recompute::full) {
    attention_half(l, dropout);
    mlp_up(l);
    return;
  }
  layernorm_forward(stream_, a.r_mid, p.ln2_weight.value, p.ln2_bias.value,
                    config_.layernorm_epsilon, a.ln2, a.mean2, a.rstd2);
  gelu_forward(stream_, a.pre, a.act);
}

}  // namespace tally::train
