// The MLP from a norm's output to the residual stream. Under tensor parallelism the first GEMM is
// column parallel and the second row parallel.
//   act = f(x w_fc^T + b);  r = residual + dropout(act w_proj^T + b)
// Llama's has no biases, and w_fc has the rows of the gates and then those of the ups:
//   act = swiglu(x w_fc^T);  r = residual + dropout(act w_proj^T)
#pragma once

#include <array>
#include <cstdint>

#include "src/nn/projection.h"

namespace tally::train {

// The tensors that the layer saves for the backward pass; F = ffn, or this
// process's share of it. The backward pass overwrites one
// of them with the gradient at the activation's input.
struct MlpActivations {
  Tensor saved;  // [M,F] the activation's input or derivative, see SavedValue; [M,2F] SwiGLU's
  Tensor act;    // [M,F] the activation's output
  Tensor x_amaxes, act_amaxes;  // LinearInput's, in FP8
};

class Mlp {
 public:
  Mlp(const ParameterTable& table, const ActivationForm& activation, int64_t layer)
      : fc_(table, {Role::fc, layer}),
        projection_(table, {Role::mlp_projection, layer}, {DropoutSite::mlp, layer}),
        activation_(activation) {}

  // Goes from x[M,C] to `sum`.
  void forward(const LayerContext& c, const Tensor& x, const MlpActivations& a,
               const Tensor& residual, const NormedSum& sum) const;
  // The first half of forward(), for recomputation too: `a` from x.
  void activate(const LayerContext& c, const Tensor& x, const MlpActivations& a) const;
  // Recomputes a.act from the saved input (SavedValue::input).
  void recompute_act(const LayerContext& c, const MlpActivations& a) const;
  // Goes from the gradient at the projection's output in `flow` (Projection::backward_sum) to the
  // gradient at x, in flow.normed.
  void backward(const LayerContext& c, const Tensor& x, const MlpActivations& a,
                const BackwardFlow& flow) const;

  const Linear& fc() const { return fc_; }
  std::array<Linear*, 2> matrices() { return {&fc_, &projection_}; }
  const Projection& projection() const { return projection_; }

 private:
  bool gated() const { return entry_of(activation_.kind).gated; }
  // The gradient at the first GEMM's output, in the memory of one of `a`. In FP8 with its largest
  // magnitude (Linear::amax_of_gradient).
  Tensor backward_activation(const LayerContext& c, const OutputGradient& dy,
                             const MlpActivations& a) const;

  Linear fc_;
  Projection projection_;
  ActivationForm activation_;
};

}  // namespace tally::train
