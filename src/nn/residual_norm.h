// The addition to the residual stream together with the LayerNorm or RMSNorm that follows it:
//   r = residual + dropout(x w^T + b),  y = norm(r)
// The layer owns the addition, so that blocks with the norm before their branches (GPT) and after
// them (BERT) use the same kernels: the next addition's residual is r there and y here.
#pragma once

#include <string>

#include "src/nn/linear.h"

namespace tally::train {

// The tensors that the layer saves for the backward pass. M = tokens of the micro batch, with
// sequence parallelism this process's part of them, C = hidden.
struct NormActivations {
  Tensor r;           // [M,C] the residual stream after the addition
  Tensor y;           // [M,C] its norm
  Tensor mean, rstd;  // [M] of r's rows; RMSNorm has no mean
};

// The output of a branch that is not computed yet: dropout(x w^T + b). The residual norm computes
// it together with the addition.
struct Branch {
  const Linear* linear = nullptr;
  Tensor x;  // [M,in]
  // The column sums of the gradient at x w^T + b are added to it; undefined without b.
  Tensor bias_gradient;
  DropoutSite site = DropoutSite::projection;
  int64_t layer = 0;
};

class ResidualNorm {
 public:
  ResidualNorm() = default;
  // `name`.weight of the table, and `name`.bias unless `rms`: RMSNorm.
  ResidualNorm(const ParameterTable& table, const std::string& name, double epsilon,
               bool rms = false)
      : weight_(table.get(name + ".weight")),
        bias_(rms ? ParamGrad() : table.get(name + ".bias")),
        epsilon_(epsilon) {}

  // Of embeddings that have dropout after their norm instead of before it (BERT): y is under the
  // mask, in norm() and backward().
  void drop_output() { drops_output_ = true; }

  // y from r alone: at the start of a stage, and for recomputation.
  void norm(const LayerContext& c, const Dropout& dropout, const NormActivations& a) const;
  // r and y. `scratch`[M,C] is overwritten where the GEMM cannot add the residual itself.
  void forward(const LayerContext& c, const Branch& branch, const Tensor& residual,
               const Dropout& dropout, const Tensor& scratch, const NormActivations& a) const;

  // r alone, where a stage of a pipeline ends and the next one has the norm.
  static void add(const LayerContext& c, const Branch& branch, const Tensor& residual,
                  const Dropout& dropout, const Tensor& scratch, const Tensor& r);
  // Its backward pass, from flow.residual, the gradient at r, as below.
  static void backward_add(const LayerContext& c, const Branch& branch, const Dropout& dropout,
                           const BackwardFlow& flow);

  // From flow->normed, the gradient at y, and flow->residual, the gradient at r from later layers
  // (none where `last`, or where the blocks have
  // their norms after the additions): flow->residual becomes the gradient at r. `branch`, where there is one
  // below, gets its gradient (in flow->branch with dropout, else flow->residual itself) and its
  // bias_gradient.
  void backward(const LayerContext& c, const NormActivations& a, const Branch* branch,
                const Dropout& dropout, bool last, const BackwardFlow& flow) const;

 private:
  void mask_output(const LayerContext& c, const Dropout& dropout, const Tensor& y) const;

  ParamGrad weight_, bias_;
  double epsilon_ = 1e-5;
  bool drops_output_ = false;
};

}  // namespace tally::train
