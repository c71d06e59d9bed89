// BERT's masked language model (Devlin et al., arXiv:1810.04805, section 3.1): the logits of the
// masked tokens alone, however many a micro batch has.
//   z = ln(f(x[rows] w_dense^T + b_dense));  loss = cross entropy(z w_decoder^T + b_decoder)
// f is the blocks' activation. The decoder's weight is the token embedding's.
#pragma once

#include "src/device/arena.h"
#include "src/nn/linear.h"
#include "src/nn/norm.h"

namespace tally::train {

// The options on which the head's results depend.
struct MaskedLmOptions {
  int64_t vocabulary = 0;  // logits that count, of the decoder's Vp rows
  double epsilon = 1e-12;
  MlpActivation activation = MlpActivation::gelu_erf;
};

// The masked tokens of a micro batch.
struct MaskedTokens {
  Tensor rows, labels;  // [K] i32; a negative label does not count
  LossFactor factor;
};

class MaskedLmHead {
 public:
  MaskedLmHead() = default;
  // `decoder`: the token table.
  MaskedLmHead(const ParameterTable& table, const ParamGrad& decoder,
               const MaskedLmOptions& options);

  // Reserves memory for up to `tokens` masked tokens, with logits of `rows` of them at once in
  // `logits`[rows,Vp].
  void reserve(Arena* arena, int64_t tokens, const Tensor& logits);

  // state->loss_sums[0] += factor * sum of the losses of the masked tokens of x[M,C].
  void evaluate(const LayerContext& c, const Tensor& x, const MaskedTokens& tokens,
                StepState* state) const;
  // The same, and adds the gradient at x, with factor * state->loss_scale, to dx[M,C]. The
  // decoder's gradient is overwritten where LayerContext says so.
  void forward_backward(const LayerContext& c, const Tensor& x, const MaskedTokens& tokens,
                        StepState* state, const Tensor& dx) const;

 private:
  // Activations of K masked tokens, [K,C] but for the statistics and losses [K].
  struct Scratch {
    Tensor x, pre, act, z, dz, mean, rstd, losses;
    Scratch first(int64_t tokens) const;
    NormActivations norm() const { return {act, z, mean, rstd}; }
  };

  void transform(const LayerContext& c, const Tensor& x, const Tensor& rows,
                 const Scratch& s) const;
  void backward_transform(const LayerContext& c, const Tensor& rows, const Scratch& s,
                          const Tensor& dx) const;
  void clear_gradients(const LayerContext& c) const;

  Linear dense_, decoder_;
  Norm norm_;
  MaskedLmOptions options_;
  Tensor logits_;
  Scratch reserved_;
};

}  // namespace tally::train
