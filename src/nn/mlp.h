// The MLP up to its second GEMM, which the residual norm after it computes (Branch). Under tensor
// parallelism the first GEMM is column parallel and the second row parallel.
//   act = gelu(x w_fc^T + b);  branch = act w_proj^T + b
// Llama's has no biases, and w_fc has the rows of the gates and then those of the ups:
//   act = swiglu(x w_fc^T);  branch = act w_proj^T
#pragma once

#include <cstdint>
#include <string>

#include "src/nn/linear.h"
#include "src/nn/residual_norm.h"
#include "src/ops/linear/linear.h"

namespace tally::train {

// The tensors that the layer saves for the backward pass; F = ffn, or this
// process's share of it. The backward pass overwrites one
// of them with the gradient at GELU's input.
struct MlpActivations {
  Tensor saved;  // [M,F] GELU's input or derivative, see SavedGelu; [M,2F] SwiGLU's input
  Tensor act;    // [M,F] GELU's or SwiGLU's output
};

// Which GELU it is, and what is saved of it.
struct MlpGelu {
  GeluKind kind = GeluKind::tanh;
  SavedGelu saved = SavedGelu::input;
};

class Mlp {
 public:
  // Parameters `fc` and `projection`. `gated`: with SwiGLU and without biases.
  Mlp(const ParameterTable& table, const std::string& fc, const std::string& projection,
      const MlpGelu& gelu, bool gated, int64_t layer)
      : fc_(table, fc, !gated),
        projection_(table, projection, !gated),
        gelu_(gelu),
        gated_(gated),
        layer_(layer) {}

  void forward(const LayerContext& c, const Tensor& x, const MlpActivations& a) const;
  // Recomputes a.act from the saved input (SavedGelu::input).
  void recompute_act(const LayerContext& c, const MlpActivations& a) const;
  Branch branch(const MlpActivations& a) const {
    return {&projection_, a.act, projection_.bias.gradient, DropoutSite::mlp, layer_};
  }
  // From the branch's gradient in `flow` to the gradient at x, in flow.normed.
  void backward(const LayerContext& c, const Tensor& x, const MlpActivations& a,
                const Dropout& dropout, const BackwardFlow& flow) const;

  const Linear& fc() const { return fc_; }
  const Linear& projection() const { return projection_; }

 private:
  // The gradient at the first GEMM's output, in the memory of one of `a`.
  Tensor backward_activation(const LayerContext& c, const Tensor& dy,
                             const MlpActivations& a) const;

  Linear fc_, projection_;
  MlpGelu gelu_;
  bool gated_;
  int64_t layer_;
};

}  // namespace tally::train
