// A class for each sequence, from its first token ([CLS]): BERT's next-sentence prediction and
// classification (arXiv:1810.04805), DistilBERT's classification (arXiv:1910.01108).
//   h = activation(x[first] w_dense^T + b);  loss = cross entropy(dropout(h) w_output^T + b)
// BERT calls the dense layer with tanh the pooler; DistilBERT's has ReLU.
#pragma once

#include "src/device/arena.h"
#include "src/nn/linear.h"
#include "src/ops/loss/loss.h"
#include "src/ops/rows/rows.h"

namespace tally::train {

// The sequences of a micro batch.
struct SequenceLabels {
  Tensor firsts, labels;  // [S] i32; a negative label does not count
  LossFactor factor;
  size_t head;  // index of the loss in StepState::loss_sums
};

class SequenceHead {
 public:
  SequenceHead() = default;
  // `output`: which one. `dropout`: probability.
  SequenceHead(const ParameterTable& table, Activation activation, Role output, double dropout)
      : dense_(table, {Role::sequence_dense}),
        output_(table, {output}),
        activation_(activation),
        dropout_(dropout) {}

  // Reserves memory for up to `sequences` of a micro batch.
  void reserve(Arena* arena, int64_t sequences);

  // state->loss_sums[head] += factor * sum of the losses of sequences of x[M,C]. Leaves logits().
  void evaluate(const LayerContext& c, const Tensor& x, const SequenceLabels& s, StepState* state);
  // The same under the dropout of `seed` (the value 0: none), and adds the gradient at x, with
  // factor * state->loss_scale, to dx[M,C].
  void forward_backward(const LayerContext& c, const Tensor& x, const SequenceLabels& s,
                        DropoutSeed seed, StepState* state, const Tensor& dx) const;

  const Tensor& logits() const { return evaluated_; }  // [S,classes] of the last evaluate()

 private:
  // Scratch of S sequences: [S,C] but for logits[S,classes] and losses[S].
  struct Scratch {
    Tensor x, hidden, dropped, logits, losses;
  };
  Scratch forward(const LayerContext& c, const Tensor& x, const SequenceLabels& s, double dropout,
                  DropoutSeed seed) const;

  Linear dense_, output_;
  Activation activation_ = Activation::tanh;
  double dropout_ = 0;
  Scratch reserved_;
  Tensor evaluated_;
};

}  // namespace tally::train
