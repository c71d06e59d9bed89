// Logits over the vocabulary and their cross-entropy, some tokens at a time, so that the logits of
// a micro batch never exist as a whole.
//   loss = cross entropy(x W^T, labels)
#pragma once

#include <cstdint>

#include "src/nn/context.h"
#include "src/nn/parameters.h"

namespace tally::train {

// Scratch of the head; `rows` tokens at once, Vp = padded vocabulary.
struct HeadScratch {
  Tensor logits;  // [rows,Vp]
  Tensor losses;  // [M] f32 (f64 for f64)
  Tensor scales;  // [rows] the same: of linear_cross_entropy
};

class LmHead {
 public:
  LmHead() = default;
  // `weight`[Vp,C]: the token embedding's where they are tied.
  LmHead(const ParamGrad& weight, int64_t vocabulary) : weight_(weight), vocabulary_(vocabulary) {}

  // Tokens whose logits are held at once, for M `tokens`.
  static int64_t rows_at_once(int64_t tokens, const ModelConfig& model, DType type, bool gpu);

  // state->loss_sum += factor * sum of the losses of x[M,C] at labels[M] (a negative label counts
  // 0). x is scratch afterwards.
  void evaluate(const LayerContext& c, const Tensor& x, const Tensor& labels, LossFactor factor,
                const HeadScratch& scratch, StepState* state) const;
  // The same, and the gradient at x in dx[M,C], with factor * state->loss_scale, and the weight's
  // gradient.
  void forward_backward(const LayerContext& c, const Tensor& x, const Tensor& labels,
                        LossFactor factor, const HeadScratch& scratch, StepState* state,
                        const Tensor& dx) const;

  const ParamGrad& weight() const { return weight_; }

 private:
  ParamGrad weight_;
  int64_t vocabulary_ = 0;
};

}  // namespace tally::train
