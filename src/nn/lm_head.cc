#include "src/nn/lm_head.h"

#include <algorithm>

#include "src/nn/gemm_calls.h"
#include "src/ops/loss/loss.h"
#include "src/ops/rows/rows.h"

namespace tally::train {
namespace {

// Logits held at once: in bytes on a GPU; in elements on a CPU, as many as stay near the caches.
constexpr int64_t logits_on_gpu = int64_t{1} << 32;
constexpr int64_t logits_on_cpu = int64_t{1} << 23;

// Calls work(first, rows) for all tokens.
template <typename Work>
void for_pieces(int64_t tokens, const HeadScratch& scratch, const Work& work) {
  const int64_t step = scratch.logits.dim(0);
  for (int64_t first = 0; first < tokens; first += step)
    work(first, std::min(step, tokens - first));
}

}  // namespace

// A power of two of tokens, so that every piece but the last has a size that is fast in GEMMs. On a
// GPU at most half of them, and a quarter where the head is a small part of the model's work:
// larger pieces make the head faster and need more memory.
int64_t LmHead::rows_at_once(int64_t tokens, const ModelConfig& model, int64_t columns, DType type,
                             bool gpu) {
  const int64_t vocabulary = model.padded_vocabulary;
  const int64_t pieces =
      12 * vocabulary > model.layers * (4 * model.hidden + 2 * model.ffn) ? 2 : 4;
  const int64_t elements =
      gpu ? logits_on_gpu / static_cast<int64_t>(size_of(type)) : logits_on_cpu;
  const int64_t limit = std::max<int64_t>(1, elements / columns);
  int64_t rows = 1;
  while (rows * 2 <= limit && (!gpu || rows * 2 * pieces <= tokens)) rows *= 2;
  return std::min(rows, tokens);
}

// The losses of some tokens whose logits several processes have, and with `gradient` the gradient
// in the logits' place.
void LmHead::divided_loss(const LayerContext& c, const Tensor& logits, const Tensor& labels,
                          const std::optional<LossGradient>& gradient, const HeadScratch& scratch,
                          const Tensor& losses) const {
  const int64_t rows = labels.numel(), shards = c.tensor.shards();
  const Tensor sums(scratch.sums.data, scratch.sums.dtype, {3, rows});
  const Tensor all(scratch.all_sums.data, scratch.sums.dtype, {shards, 3, rows});
  cross_entropy_sums(c.compute, logits, {labels, columns_}, Out(sums));
  c.tensor.group->all_gather(c.compute, sums, all);
  cross_entropy_from_sums(c.compute, {Out(logits), {labels, columns_}, all}, gradient, Out(losses));
}

// All processes have the same losses; one counts them.
void LmHead::add(const LayerContext& c, LossFactor factor, const HeadScratch& scratch,
                 StepState* state) const {
  if (c.tensor.shard() == 0) add_losses(c.compute, scratch.losses, factor, state->loss_sums);
}

void LmHead::evaluate(const LayerContext& c, const Tensor& part, const Tensor& labels,
                      LossFactor factor, const HeadScratch& scratch, StepState* state,
                      double* correct) const {
  const Tensor x = c.tensor.gather(c.compute, part);
  for_pieces(labels.numel(), scratch, [&](int64_t first, int64_t rows) {
    const Tensor logits = scratch.logits.rows(0, rows);
    decoder_.forward(c, x.rows(first, rows), logits);
    const Tensor right = labels.rows(first, rows), losses = scratch.losses.rows(first, rows);
    if (c.tensor.divides()) {
      divided_loss(c, logits, right, {}, scratch, losses);
    } else {
      cross_entropy(c.compute, Out(logits), {right, columns_.count}, {}, Out(losses));
      if (correct) add_correct(c.compute, logits, {right, columns_.count}, correct);
    }
  });
  add(c, factor, scratch, state);
}

void LmHead::forward_backward(const LayerContext& c, const Tensor& x_part, const Tensor& labels,
                              LossFactor factor, const HeadScratch& scratch, StepState* state,
                              const Tensor& dx_part) const {
  const Tensor x = c.tensor.gather(c.compute, x_part), dx = c.tensor.partial_of(dx_part);
  const LossGradient gradient{factor, state};
  for_pieces(labels.numel(), scratch, [&](int64_t first, int64_t rows) {
    const Tensor logits = scratch.logits.rows(0, rows), part = x.rows(first, rows);
    const Tensor right = labels.rows(first, rows), losses = scratch.losses.rows(first, rows);
    const Tensor scales = scratch.scales.rows(0, rows), out = dx.rows(first, rows);
    const HeadOperands head{Out(part), decoder_.weight.value, {right, columns_.count}};
    const HeadResults results{Out(losses), Out(scales), Out(logits)};
    const bool fused = c.fusions().head && !c.tensor.divides() &&
                       linear_cross_entropy_pays(c.compute, head, results);
    if (fused) {
      linear_cross_entropy(c.compute, head, gradient, results);
      // The fused GEMM scales x, so that it cannot be called again: the plain one stands for it.
      note_gemm(linear_forward, c, part, {decoder_.weight.value, {}}, results.e, {});
    } else {
      decoder_.forward(c, part, logits);
      if (c.tensor.divides()) {
        divided_loss(c, logits, right, gradient, scratch, losses);
      } else {
        cross_entropy(c.compute, results.e, head.labels, gradient, results.losses);
      }
    }
    const OutputGradient dlogits = decoder_.gradient_at_output(c, logits);
    decoder_.backward_weight(c, dlogits, part, first > 0);
    decoder_.backward_input(c, dlogits, out);
    if (fused) scale_rows(c.compute, scales, Out(out));
  });
  c.tensor.reduce(c.compute, dx_part);
  add(c, factor, scratch, state);
}

}  // namespace tally::train
