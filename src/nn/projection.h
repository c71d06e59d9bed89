// The last matrix of a branch, whose output is added to the residual stream, and the norm of the
// sum:
//   r = residual + dropout(x w^T + b),  y = norm(r)
// add_to() alone chooses how:
//   without dropout, in one process   the GEMM adds the residual, then the norm
//   else, or --no-fusion residual     the GEMM; under tensor parallelism each process's part and
//                                     their sum; then dropout, addition and norm in one kernel
#pragma once

#include "src/nn/linear.h"
#include "src/nn/norm.h"

namespace tally::train {

// A sum of the residual stream and the norm that follows it.
struct NormedSum {
  const Norm* norm = nullptr;  // null: the next stage of a pipeline has it, and there is only r
  NormActivations a;
  bool carried = true;  // r is an operand of the next addition, too
};

// The mask that the dropout of the output draws.
struct DropoutKey {
  DropoutSite site = DropoutSite::projection;
  int64_t layer = 0;
};

class Projection : public Linear {
 public:
  // Parameters as Linear's. `sums`[C]: memory for the column sums of the gradient at the output
  // (gradient type), zero before each backward pass. Where it is defined, backward_sum() adds them
  // to it with Fusions::qkv_bias, and leaves the bias's gradient to backward_bias_from_sums().
  Projection(const ParameterTable& table, const WeightId& id, const DropoutKey& key,
             const Tensor& sums = Tensor())
      : Linear(table, id), key_(key), sums_(sums) {}

  // x[M,in] is this process's share of the input.
  void add_to(const LayerContext& c, const LinearInput& x, const Tensor& residual,
              const NormedSum& sum) const;
  // Goes from the gradients at y and r (flow.normed, flow.residual) to those at r and at the output
  // before its dropout (flow.residual, flow.at_branch()), whose column sums are added up.
  void backward_sum(const LayerContext& c, const NormedSum& sum, const BackwardFlow& flow) const;
  const Tensor& sums() const { return sums_; }

 private:
  Tensor bias_sums(const LayerContext& c) const;

  DropoutKey key_;
  Tensor sums_;
};

}  // namespace tally::train
