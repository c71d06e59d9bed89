#include "src/nn/span_head.h"

#include "src/ops/rows/rows.h"

namespace tally::train {

void SpanHead::reserve(Arena* arena, int64_t sequences, int64_t tokens, int64_t all) {
  const DType type = output_.weight.value.dtype;
  if (dropout_ > 0)
    dropped_ = arena->make(type, {all, output_.weight.value.dim(1)}, "states before answers");
  columns_ = arena->make(type, {all, 2}, "logits of answers");
  spans_ = arena->make(type, {2, sequences, tokens}, "logits of answers");
  losses_ = arena->make(output_.weight.gradient.dtype, {2, sequences}, "losses of answers");
}

Tensor SpanHead::spans_of(const LayerContext& c, const Tensor& x, const SpanLabels& s) const {
  const Tensor columns = columns_.rows(0, x.dim(0));
  const Tensor spans(spans_.data, spans_.dtype, {2, s.firsts.numel(), spans_.dim(2)});
  output_.forward(c, x, columns);
  columns_to_rows(c.compute, columns, {s.firsts, s.lengths}, Out(spans));
  return spans;
}

void SpanHead::losses(const LayerContext& c, const SpanLabels& s, const Tensor& spans,
                      bool backward, StepState* state) const {
  const int64_t sequences = spans.dim(1), tokens = spans.dim(2);
  for (const int64_t k : {0, 1}) {
    const auto i = static_cast<size_t>(k);
    const Tensor losses = losses_.rows(k, 1).view({losses_.dim(1)}).rows(0, sequences);
    cross_entropy(c.compute, Out(spans.rows(k, 1).view({sequences, tokens})), {s.labels[i], tokens},
                  backward ? std::optional(LossGradient{s.factor[i], state}) : std::nullopt,
                  Out(losses));
    add_losses(c.compute, losses, s.factor[i], &state->loss_sums[i]);
  }
}

void SpanHead::evaluate(const LayerContext& c, const Tensor& x, const SpanLabels& s,
                        StepState* state) {
  evaluated_ = spans_of(c, x, s);
  losses(c, s, evaluated_, false, state);
}

void SpanHead::forward_backward(const LayerContext& c, const Tensor& x, const SpanLabels& s,
                                DropoutSeed seed, StepState* state, const Tensor& dx) const {
  const bool drops = dropout_ > 0 && (seed.state || seed.value != 0);
  const Tensor states = drops ? dropped_.rows(0, x.dim(0)) : x;
  if (drops) apply_dropout(c.compute, x, {dropout_, seed}, Out(states));
  const Tensor spans = spans_of(c, states, s), columns = columns_.rows(0, x.dim(0));
  losses(c, s, spans, true, state);
  rows_to_columns(c.compute, spans, {s.firsts, s.lengths}, Out(columns));
  output_.backward_whole(c, columns, states, dx);
  if (drops) apply_dropout(c.compute, dx, {dropout_, seed}, Out(dx));
}

}  // namespace tally::train
