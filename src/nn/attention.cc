#include "src/nn/attention.h"

#include <cmath>

#include "src/ops/linear/linear.h"

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

SelfAttention::SelfAttention(const ParameterTable& table, const std::string& qkv,
                             const std::string& projection, const AttentionGeometry& geometry,
                             bool biases, int64_t layer, const Tensor& sums)
    : qkv_(table, qkv, biases),
      projection_(table, projection, biases),
      geometry_(geometry),
      layer_(layer),
      sums_(sums) {}

AttentionArgs SelfAttention::arguments(const LayerContext& c, const TokenLayout& layout,
                                       const AttentionActivations& a,
                                       const Dropout& dropout) const {
  const AttentionShape shape =
      geometry_.shape(layout.batch, layout.tokens, dropout, layout.cu_seqlens.defined());
  AttentionArgs args = packed_attention(shape, a.qkv, a.out, a.stats, c.workspace,
                                        dropout.at(DropoutSite::attention, layer_));
  args.cu_seqlens = layout.cu_seqlens;
  return args;
}

void SelfAttention::forward(LayerContext* c, const Tensor& x, const TokenLayout& layout,
                            const Dropout& dropout, const DeferredUpdate* update,
                            const AttentionActivations& a) const {
  const AttentionGeometry& g = geometry_;
  qkv_.forward(*c, c->tensor.gather(c->compute, x), a.qkv.view({layout.count(), g.qkv_width()}));
  if (rotary_positions()) {
    rotary(c->compute, a.qkv, g.kv_heads, layout.positions, g.rotary_base, g.rotary_fraction,
           false);
  }
  if (update) update->finish(c);
  attention_forward(c->compute, arguments(*c, layout, a, dropout));
  if (update) update->start(c, layer_);
}

Branch SelfAttention::branch(const LayerContext& c, const AttentionActivations& a) const {
  if (!has_biases()) return {&projection_, a.out, Tensor(), DropoutSite::projection, layer_};
  // The gradient of V's bias follows from these sums, too.
  return {&projection_, a.out, c.fusions.qkv_bias ? sums_ : projection_.bias.gradient,
          DropoutSite::projection, layer_};
}

void SelfAttention::backward(const LayerContext& c, const Tensor& x, const TokenLayout& layout,
                             const AttentionActivations& a, const Dropout& dropout,
                             const Tensor& qkv_grad, const BackwardFlow& flow) const {
  const AttentionGeometry& g = geometry_;
  const Tensor dy = c.tensor.gather(c.compute, flow.at_branch(dropout));
  const Tensor all = c.tensor.start_gather(c.compute, x);
  projection_.backward_weight(c, dy, a.out);
  const Tensor dx = c.tensor.partial_of(flow.normed);
  const Tensor dout = Tensor(dx.data, dx.dtype, {layout.count(), g.width()});
  projection_.backward_input(c, dy, dout);
  // Attention can sum dQ's columns itself, but before the inverse rotation.
  const bool sums_of_q = has_biases() && c.fusions.qkv_bias && !rotary_positions();
  const Tensor q_sums = sums_of_q ? qkv_.bias.gradient.rows(0, g.width()) : Tensor();
  const AttentionArgs args = arguments(c, layout, a, dropout);
  attention_backward(c.compute, args, packed_gradients(args.shape, dout, qkv_grad, q_sums));
  if (rotary_positions()) {
    rotary(c.compute, qkv_grad, g.kv_heads, layout.positions, g.rotary_base, g.rotary_fraction,
           true);
  }
  const Tensor dqkv = qkv_grad.view({layout.count(), g.qkv_width()});
  if (has_biases()) backward_qkv_bias(c, dropout, dqkv);
  qkv_.backward(c, dqkv, all, flow.normed, flow.at_branch_input());
  c.side->wait(1);  // the norm below overwrites dy; the GEMM that reads dqkv may still run
}

// The bias's gradient is the column sums of dqkv. For K they are 0 before rotation: a bias that all
// keys share moves all scores of a row alike, and softmax ignores that. For V without dropout they
// are the column sums of the gradient at the attention's output, because each row of probabilities
// sums to 1, and those follow from the sums at the projection's output.
void SelfAttention::backward_qkv_bias(const LayerContext& c, const Dropout& dropout,
                                      const Tensor& dqkv) const {
  const int64_t width = geometry_.width();
  if (!c.fusions.qkv_bias) return linear_backward_bias(c.compute, dqkv, 0, qkv_.bias.gradient);
  const auto part = [&](int64_t first, int64_t count) {
    return qkv_.bias.gradient.rows(first * width, count * width);
  };
  if (rotary_positions()) linear_backward_bias(c.compute, dqkv, 0, part(0, 2));
  const bool from_sums = dropout.attention == 0;
  if (!from_sums) linear_backward_bias(c.compute, dqkv, 2 * width, part(2, 1));
  linear_backward_bias_input(c.compute, sums_, projection_.weight.value, projection_.bias.gradient,
                             from_sums ? part(2, 1) : Tensor());
}

}  // namespace tally::train
