#include "src/nn/masked_lm_head.h"

#include <algorithm>

#include "src/ops/loss/loss.h"
#include "src/ops/rows/rows.h"

namespace tally::train {
namespace {

// Calls work(first, rows) for `tokens` tokens, as many at once as there are logits for.
template <typename Work>
void for_rows(int64_t tokens, const Tensor& logits, const Work& work) {
  const int64_t step = logits.dim(0);
  for (int64_t first = 0; first < tokens; first += step)
    work(first, std::min(step, tokens - first));
}

}  // namespace

MaskedLmHead::MaskedLmHead(const ParameterTable& table, const ParamGrad& decoder,
                           const MaskedLmOptions& options)
    : dense_(table, {Role::masked_dense}),
      decoder_(decoder, table.bias({Role::masked_decoder})),
      norm_(table, {Role::masked_norm}, options.epsilon),
      options_(options) {}

void MaskedLmHead::reserve(Arena* arena, int64_t tokens, const Tensor& logits) {
  const DType type = decoder_.weight.value.dtype, wide = decoder_.weight.gradient.dtype;
  const int64_t c = decoder_.weight.value.dim(1);
  logits_ = logits;
  for (Tensor* t : {&reserved_.x, &reserved_.pre, &reserved_.act, &reserved_.z, &reserved_.dz})
    *t = arena->make(type, {tokens, c}, "masked tokens");
  for (Tensor* t : {&reserved_.mean, &reserved_.rstd, &reserved_.losses})
    *t = arena->make(wide, {tokens}, "masked tokens");
}

MaskedLmHead::Scratch MaskedLmHead::Scratch::first(int64_t tokens) const {
  const auto rows = [tokens](const Tensor& t) { return t.rows(0, tokens); };
  return {rows(x), rows(pre), rows(act), rows(z), rows(dz), rows(mean), rows(rstd), rows(losses)};
}

void MaskedLmHead::transform(const LayerContext& c, const Tensor& x, const Tensor& rows,
                             const Scratch& s) const {
  gather_rows(c.compute, x, rows, Out(s.x));
  dense_.forward_activation(c, s.x, {{options_.activation, SavedValue::input}, s.pre}, s.act);
  norm_.forward(c, s.norm());
}

void MaskedLmHead::evaluate(const LayerContext& c, const Tensor& x, const MaskedTokens& tokens,
                            StepState* state) const {
  const int64_t count = tokens.rows.numel();
  if (count == 0) return;
  const Scratch s = reserved_.first(count);
  transform(c, x, tokens.rows, s);
  for_rows(count, logits_, [&](int64_t first, int64_t rows) {
    const Tensor logits = logits_.rows(0, rows);
    decoder_.forward(c, s.z.rows(first, rows), logits);
    cross_entropy(c.compute, Out(logits), {tokens.labels.rows(first, rows), options_.vocabulary},
                  {}, Out(s.losses.rows(first, rows)));
  });
  add_losses(c.compute, s.losses, tokens.factor, state->loss_sums);
}

void MaskedLmHead::forward_backward(const LayerContext& c, const Tensor& x,
                                    const MaskedTokens& tokens, StepState* state,
                                    const Tensor& dx) const {
  const int64_t count = tokens.rows.numel();
  if (count == 0) return clear_gradients(c);
  const Scratch s = reserved_.first(count);
  transform(c, x, tokens.rows, s);
  for_rows(count, logits_, [&](int64_t first, int64_t rows) {
    const Tensor logits = logits_.rows(0, rows), z = s.z.rows(first, rows);
    decoder_.forward(c, z, logits);
    cross_entropy(c.compute, Out(logits), {tokens.labels.rows(first, rows), options_.vocabulary},
                  LossGradient{tokens.factor, state}, Out(s.losses.rows(first, rows)));
    decoder_.backward_whole(c, logits, z, s.dz.rows(first, rows), first > 0);
  });
  backward_transform(c, tokens.rows, s, dx);
  add_losses(c.compute, s.losses, tokens.factor, state->loss_sums);
}

// Takes the gradient at z, in s.dz.
void MaskedLmHead::backward_transform(const LayerContext& c, const Tensor& rows, const Scratch& s,
                                      const Tensor& dx) const {
  BackwardFlow flow;
  flow.normed = s.dz;
  flow.residual = s.z;  // z has been read for the last time
  norm_.backward(c, s.norm(), false, flow);
  mlp_activation_backward(c.compute, s.z, s.pre, options_.activation, {Out(s.pre), {}, {}});
  dense_.backward_whole(c, s.pre, s.x, s.act);
  add_to_rows(c.compute, s.act, rows, Out(dx));
}

// No GEMM overwrites the last step's gradients if there are no masked tokens.
void MaskedLmHead::clear_gradients(const LayerContext& c) const {
  if (c.accumulate) return;
  for (const Tensor& t : {decoder_.weight.gradient, dense_.weight.gradient})
    c.compute.stream.fill_zero(t.data, t.bytes());
}

}  // namespace tally::train
