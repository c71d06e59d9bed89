#include "src/nn/sequence_head.h"

#include "src/ops/norm/norm.h"

namespace tally::train {

void SequenceHead::reserve(Arena* arena, int64_t sequences) {
  const DType type = dense_.weight.value.dtype;
  const int64_t c = dense_.weight.value.dim(0), classes = output_.weight.value.dim(0);
  for (Tensor* t : {&reserved_.x, &reserved_.hidden, &reserved_.dropped})
    *t = arena->make(type, {sequences, c}, "first tokens");
  reserved_.logits = arena->make(type, {sequences, classes}, "logits of classes");
  reserved_.losses = arena->make(dense_.weight.gradient.dtype, {sequences}, "losses of classes");
}

SequenceHead::Scratch SequenceHead::forward(const LayerContext& c, const Tensor& x,
                                            const SequenceLabels& s, double dropout,
                                            DropoutSeed seed) const {
  const int64_t n = s.firsts.numel();
  const Scratch a{reserved_.x.rows(0, n), reserved_.hidden.rows(0, n), reserved_.dropped.rows(0, n),
                  reserved_.logits.rows(0, n), reserved_.losses.rows(0, n)};
  gather_rows(c.compute, x, s.firsts, Out(a.x));
  dense_.forward(c, a.x, a.hidden);
  activation_forward(c.compute, activation_, a.hidden, Out(a.hidden));
  if (dropout > 0) apply_dropout(c.compute, a.hidden, {dropout, seed}, Out(a.dropped));
  output_.forward(c, dropout > 0 ? a.dropped : a.hidden, a.logits);
  return a;
}

void SequenceHead::evaluate(const LayerContext& c, const Tensor& x, const SequenceLabels& s,
                            StepState* state) {
  const Scratch a = forward(c, x, s, 0, {});
  cross_entropy(c.compute, Out(a.logits), {s.labels, a.logits.dim(1)}, {}, Out(a.losses));
  add_losses(c.compute, a.losses, s.factor, &state->loss_sums[s.head]);
  evaluated_ = a.logits;
}

void SequenceHead::forward_backward(const LayerContext& c, const Tensor& x, const SequenceLabels& s,
                                    DropoutSeed seed, StepState* state, const Tensor& dx) const {
  const double dropout = seed.state || seed.value != 0 ? dropout_ : 0;
  const Scratch a = forward(c, x, s, dropout, seed);
  cross_entropy(c.compute, Out(a.logits), {s.labels, a.logits.dim(1)},
                LossGradient{s.factor, state}, Out(a.losses));
  add_losses(c.compute, a.losses, s.factor, &state->loss_sums[s.head]);
  // The GEMM that reads them for the weight's gradient comes before their gradient takes their
  // place.
  const Tensor& dhidden = a.dropped;
  output_.backward_whole(c, a.logits, dropout > 0 ? a.dropped : a.hidden, dhidden);
  if (dropout > 0) apply_dropout(c.compute, dhidden, {dropout, seed}, Out(dhidden));
  activation_backward(c.compute, activation_, dhidden, a.hidden, Out(dhidden));
  dense_.backward_whole(c, dhidden, a.x, a.hidden);
  add_to_rows(c.compute, a.hidden, s.firsts, Out(dx));
}

}  // namespace tally::train
