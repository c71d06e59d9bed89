#include "src/nn/lm_head.h"

#include <algorithm>

#include "src/nn/linear.h"
#include "src/ops/linear/linear.h"
#include "src/ops/loss/loss.h"

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
int64_t LmHead::rows_at_once(int64_t tokens, const ModelConfig& model, DType type, bool gpu) {
  const int64_t vocabulary = model.padded_vocabulary;
  const int64_t pieces =
      12 * vocabulary > model.layers * (4 * model.hidden + 2 * model.ffn) ? 2 : 4;
  const int64_t elements =
      gpu ? logits_on_gpu / static_cast<int64_t>(size_of(type)) : logits_on_cpu;
  const int64_t limit = std::max<int64_t>(1, elements / vocabulary);
  int64_t rows = 1;
  while (rows * 2 <= limit && (!gpu || rows * 2 * pieces <= tokens)) rows *= 2;
  return std::min(rows, tokens);
}

void LmHead::evaluate(const LayerContext& c, const Tensor& x, const Tensor& labels,
                      LossFactor factor, const HeadScratch& scratch, StepState* state) const {
  for_pieces(labels.numel(), scratch, [&](int64_t first, int64_t rows) {
    const Tensor logits = scratch.logits.rows(0, rows);
    linear_forward(c.compute, x.rows(first, rows), weight_.value, Tensor(), logits);
    cross_entropy(c.compute, logits, labels.rows(first, rows), vocabulary_, false, factor, nullptr,
                  scratch.losses.rows(first, rows));
  });
  add_losses(c.compute, scratch.losses, factor, state);
}

void LmHead::forward_backward(const LayerContext& c, const Tensor& x, const Tensor& labels,
                              LossFactor factor, const HeadScratch& scratch, StepState* state,
                              const Tensor& dx) const {
  for_pieces(labels.numel(), scratch, [&](int64_t first, int64_t rows) {
    const Tensor logits = scratch.logits.rows(0, rows), part = x.rows(first, rows);
    const Tensor right = labels.rows(first, rows), losses = scratch.losses.rows(first, rows);
    const Tensor scales = scratch.scales.rows(0, rows), out = dx.rows(first, rows);
    const bool fused =
        c.fusions.head && linear_cross_entropy_pays(c.compute, part, weight_.value, right,
                                                    vocabulary_, losses, scales, logits);
    if (fused) {
      linear_cross_entropy(c.compute, part, weight_.value, right, vocabulary_, factor, state,
                           losses, scales, logits);
    } else {
      linear_forward(c.compute, part, weight_.value, Tensor(), logits);
      cross_entropy(c.compute, logits, right, vocabulary_, true, factor, state, losses);
    }
    backward_weight(c, logits, part, weight_, c.accumulate || first > 0);
    linear_backward_input(c.compute, logits, weight_.value, out);
    if (fused) scale_rows(c.compute, scales, out);
    c.side->wait();  // the next piece overwrites the logits
  });
  add_losses(c.compute, scratch.losses, factor, state);
}

}  // namespace tally::train
