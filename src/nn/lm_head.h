// Logits over the vocabulary and their cross-entropy, some tokens at a time, so that the logits of
// a micro batch never exist as a whole.
//   loss = cross entropy(x W^T, labels)
#pragma once

#include <cstdint>
#include <optional>

#include "src/nn/linear.h"
#include "src/ops/loss/loss.h"

namespace tally::train {

// Scratch of the head; `rows` tokens at once, Vp = padded vocabulary.
struct HeadScratch {
  Tensor logits;  // [rows,Vp]
  Tensor losses;  // [M] f32 (f64 for f64)
  Tensor scales;  // [rows] the same: of linear_cross_entropy
  // [3,rows] and [shards,3,rows] the same: of a vocabulary that several processes divide.
  Tensor sums, all_sums;
};

class LmHead {
 public:
  LmHead() = default;
  // `weight`[Vp,C]: the token embedding's where they are tied; this process's rows of it where the
  // vocabulary is divided, of which `columns` tells which they are.
  LmHead(const ParamGrad& weight, VocabularyColumns columns)
      : decoder_(weight), columns_(columns) {}

  // Tokens whose logits are held at once, for M `tokens` and `columns` logits each.
  static int64_t rows_at_once(int64_t tokens, const ModelConfig& model, int64_t columns, DType type,
                              bool gpu);

  // state->loss_sums[0] += factor * sum of the losses of x[M,C] at labels[M] (a negative label
  // counts 0), on the first of the processes that divide the vocabulary. x is scratch afterwards.
  // With sequence parallelism x and dx are this process's part of the tokens. `correct` is null, or
  // gets the tokens whose label is predicted; then the vocabulary is not divided.
  void evaluate(const LayerContext& c, const Tensor& x, const Tensor& labels, LossFactor factor,
                const HeadScratch& scratch, StepState* state, double* correct = nullptr) const;
  // The same, and the gradient at x in dx[M,C], with factor * state->loss_scale, and the weight's
  // gradient.
  void forward_backward(const LayerContext& c, const Tensor& x, const Tensor& labels,
                        LossFactor factor, const HeadScratch& scratch, StepState* state,
                        const Tensor& dx) const;

 private:
  void divided_loss(const LayerContext& c, const Tensor& logits, const Tensor& labels,
                    const std::optional<LossGradient>& gradient, const HeadScratch& scratch,
                    const Tensor& losses) const;
  void add(const LayerContext& c, LossFactor factor, const HeadScratch& scratch,
           StepState* state) const;

  Linear decoder_;
  VocabularyColumns columns_;
};

}  // namespace tally::train
