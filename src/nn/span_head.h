// Extractive question answering (arXiv:1810.04805, section 4.2): where the answer begins and ends.
//   start, end = dropout(x) w^T + b;  loss = (cross entropy(start) + cross entropy(end)) / 2
// Each cross-entropy is over the tokens of the sequence, without padding.
#pragma once

#include <array>

#include "src/device/arena.h"
#include "src/nn/linear.h"
#include "src/ops/loss/loss.h"
#include "src/ops/norm/norm.h"

namespace tally::train {

// The sequences of a micro batch and the positions of their answers.
struct SpanLabels {
  Tensor firsts, lengths;            // [S] i32
  std::array<Tensor, 2> labels;      // start, end: [S] i32; a negative label does not count
  std::array<LossFactor, 2> factor;  // each position's, with the half
};

class SpanHead {
 public:
  SpanHead() = default;
  // `dropout`: probability.
  SpanHead(const ParameterTable& table, double dropout)
      : output_(table, {Role::answers}), dropout_(dropout) {}

  // Reserves memory for up to `sequences` sequences, `tokens` in each and `all` together.
  void reserve(Arena* arena, int64_t sequences, int64_t tokens, int64_t all);

  // state->loss_sums += factors * sums of the losses of x[M,C]. Leaves logits().
  void evaluate(const LayerContext& c, const Tensor& x, const SpanLabels& s, StepState* state);
  // The same under the dropout of `seed` (the value 0: none), and writes the gradient at x, with
  // factor * state->loss_scale, to dx[M,C].
  void forward_backward(const LayerContext& c, const Tensor& x, const SpanLabels& s,
                        DropoutSeed seed, StepState* state, const Tensor& dx) const;

  const Tensor& logits() const { return evaluated_; }  // [2,S,T] of the last evaluate()

 private:
  void losses(const LayerContext& c, const SpanLabels& s, const Tensor& spans, bool backward,
              StepState* state) const;
  Tensor spans_of(const LayerContext& c, const Tensor& x, const SpanLabels& s) const;

  Linear output_;
  double dropout_ = 0;
  Tensor dropped_;  // [all,C], where there is dropout
  Tensor columns_;  // [all,2]: the logits as the GEMM gives them, and their gradient
  Tensor spans_;    // [2,S,T]: the same by sequence
  Tensor losses_;   // [2,S]
  Tensor evaluated_;
};

}  // namespace tally::train
