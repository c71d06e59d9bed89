// LayerNorm or RMSNorm of the residual stream r: y = norm(r). One kernel does a norm together with
// the dropout and the addition before it, and one their backward pass: Projection calls these.
#pragma once

#include "src/nn/context.h"
#include "src/nn/parameters.h"

namespace tally::train {

// The tensors that the layer saves for the backward pass. M = tokens of the micro batch, with
// sequence parallelism this process's part of them, C = hidden.
struct NormActivations {
  Tensor r;           // [M,C] the residual stream
  Tensor y;           // [M,C] its norm
  Tensor mean, rstd;  // [M] of r's rows; RMSNorm has no mean
};

// The addition to the residual stream: dropout(delta). The column sums of the gradient at delta
// are added to bias_gradient where it is defined.
struct AddedBranch {
  DropoutSeed seed;
  Tensor bias_gradient;
};

class Norm {
 public:
  Norm() = default;
  // RMSNorm where the model has no such bias.
  Norm(const ParameterTable& table, const WeightId& id, double epsilon)
      : weight_(table.weight(id)), bias_(table.bias(id)), epsilon_(epsilon) {}

  // Embeddings may have dropout after their norm instead of before it (BERT): y is under the
  // mask.
  void drop_output() { drops_output_ = true; }

  // Computes y from r.
  void forward(const LayerContext& c, const NormActivations& a) const;
  // flow.residual, the gradient at r, from flow.normed, the gradient at y. `carried`: r is also an
  // operand of a later addition, whose gradient is in flow.residual. `added`, where not null: gets
  // its gradient in flow.at_branch().
  void backward(const LayerContext& c, const NormActivations& a, bool carried,
                const BackwardFlow& flow, const AddedBranch* added = nullptr) const;
  // r = residual + dropout(delta) and y.
  void add_residual_norm(const LayerContext& c, const Tensor& residual, const Tensor& delta,
                         DropoutSeed seed, const NormActivations& a) const;

 private:
  void mask_output(const LayerContext& c, const Tensor& y) const;

  ParamGrad weight_, bias_;
  double epsilon_ = 1e-5;
  bool drops_output_ = false;
};

}  // namespace tally::train
