#include "src/nn/attention.h"

#include <cmath>

#include "src/nn/deferred_update.h"

namespace tally::train {

AttentionShape AttentionGeometry::shape(int64_t sequences, int64_t length, const Dropout& dropout,
                                        bool documents) const {
  AttentionShape s;
  s.batch = sequences;
  s.tokens = length;
  s.heads = heads;
  s.groups = kv_heads;
  s.head_dim = head_dim;
  s.mask = mask;
  s.scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  s.dropout = dropout.attention;
  s.documents = documents;
  if (documents) {
    s.most_documents = most_documents;
    s.longest = tokens;
  }
  return s;
}

SelfAttention::SelfAttention(const ParameterTable& table, const AttentionGeometry& geometry,
                             int64_t layer, const Tensor& sums)
    : qkv_(table, {Role::qkv, layer}),
      q_norm_(geometry.qk_norm ? table.weight({Role::q_norm, layer}) : ParamGrad()),
      k_norm_(geometry.qk_norm ? table.weight({Role::k_norm, layer}) : ParamGrad()),
      projection_(table, {Role::projection, layer}, {DropoutSite::projection, layer}, sums),
      geometry_(geometry),
      layer_(layer) {}

AttentionArgs SelfAttention::arguments(const LayerContext& c, const AttentionActivations& a) const {
  const Sequences& sequences = c.sequences;
  const AttentionShape shape =
      geometry_.shape(sequences.batch, sequences.tokens, c.dropout, sequences.cu_seqlens.defined());
  AttentionArgs args = packed_attention(shape, a.qkv, {Out(a.out), Out(a.stats)}, Out(c.workspace),
                                        c.dropout.at(DropoutSite::attention, layer_));
  args.cu_seqlens = sequences.cu_seqlens;
  return args;
}

void SelfAttention::forward(LayerContext* c, const Tensor& x, const AttentionActivations& a,
                            const Tensor& residual, const NormedSum& sum) const {
  const AttentionGeometry& g = geometry_;
  const LinearInput all = qkv_.gather_input(*c, x, a.x_amaxes);
  qkv_.forward(*c, all, a.qkv.view({c->sequences.count(), g.qkv_width()}));
  if (g.qk_norm) head_norm_forward(c->compute, Out(a.qkv), head_norm(), {Out(a.raw), Out(a.rstd)});
  if (rotary_positions()) {
    rotary_embedding(c->compute, Out(a.qkv), rotation(c->sequences), false);
  }
  if (c->update) c->update->finish(c);
  attention_forward(c->compute, arguments(*c, a));
  if (c->update) c->update->start(c, layer_);
  projection_.add_to(*c, {a.out, a.out_amaxes}, residual, sum);
}

void SelfAttention::backward(const LayerContext& c, const Tensor& x, const AttentionActivations& a,
                             const BackwardFlow& flow) const {
  const AttentionGeometry& g = geometry_;
  const int64_t count = c.sequences.count();
  const OutputGradient dy = projection_.gather_gradient(c, flow.at_branch(c.dropout));
  const LinearInput all = qkv_.start_gather_input(c, x, a.x_amaxes);
  projection_.backward_weight(c, dy, {a.out, a.out_amaxes});
  const Tensor dx = c.tensor.partial_of(flow.normed);
  const Tensor dout = Tensor(dx.data, dx.dtype, {count, g.width()});
  projection_.backward_input(c, dy, dout);
  // Attention can sum dQ's columns itself, but before the inverse rotation.
  const bool sums_of_q = has_biases() && c.qkv_bias_sums && !rotary_positions();
  const Tensor q_sums = sums_of_q ? qkv_.bias.gradient.rows(0, g.width()) : Tensor();
  const AttentionArgs args = arguments(c, a);
  attention_backward(c.compute, args,
                     packed_gradients(args.shape, dout, Out(flow.qkv), Out(q_sums)));
  if (rotary_positions()) {
    rotary_embedding(c.compute, Out(flow.qkv), rotation(c.sequences), true);
  }
  if (g.qk_norm)
    head_norm_backward(c.compute, head_norm(), {Out(a.raw), Out(a.rstd)},
                       {Out(flow.qkv), Out(q_norm_.gradient), Out(k_norm_.gradient)});
  const Tensor dqkv = flow.qkv.view({count, g.qkv_width()});
  if (has_biases()) backward_qkv_bias(c, dqkv);
  qkv_.backward(c, qkv_.gradient_at_output(c, dqkv), all, flow.normed, flow.at_branch_input());
}

// The bias's gradient is the column sums of dqkv. For K they are 0 before rotation: a bias that all
// keys share moves all scores of a row alike, and softmax ignores that. For V without dropout they
// are the column sums of the gradient at the attention's output, because each row of probabilities
// sums to 1, and those follow from the sums at the projection's output.
void SelfAttention::backward_qkv_bias(const LayerContext& c, const Tensor& dqkv) const {
  const int64_t width = geometry_.width();
  if (!c.qkv_bias_sums) return Linear::backward_bias(c, dqkv, 0, qkv_.bias.gradient);
  const auto part = [&](int64_t first, int64_t count) {
    return qkv_.bias.gradient.rows(first * width, count * width);
  };
  if (rotary_positions()) Linear::backward_bias(c, dqkv, 0, part(0, 2));
  const bool from_sums = c.dropout.attention == 0;
  if (!from_sums) Linear::backward_bias(c, dqkv, 2 * width, part(2, 1));
  projection_.backward_bias_from_sums(c, projection_.sums(), from_sums ? part(2, 1) : Tensor());
}

}  // namespace tally::train
