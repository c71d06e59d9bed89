#include "src/nn/projection.h"

#include "src/ops/norm/norm.h"

namespace tally::train {

void Projection::add_to(const LayerContext& c, const LinearInput& x, const Tensor& residual,
                        const NormedSum& sum) const {
  const double dropout = c.dropout.hidden;
  // This saves writing and reading the branch's output.
  if (dropout == 0 && c.fusions().residual && !c.tensor.divides()) {
    forward(c, x, sum.a.r, residual);
    if (sum.norm) sum.norm->forward(c, sum.a);
    return;
  }
  const Tensor delta = c.delta.rows(0, residual.dim(0));
  const DropoutSeed seed = c.dropout.at(key_.site, key_.layer);
  forward_row_parallel(c, x, delta);
  if (sum.norm) {
    sum.norm->add_residual_norm(c, residual, delta, seed, sum.a);
  } else {
    residual_forward(c.compute, {residual, delta, {dropout, seed}}, Out(sum.a.r));
  }
}

void Projection::backward_sum(const LayerContext& c, const NormedSum& sum,
                              const BackwardFlow& flow) const {
  const double dropout = c.dropout.hidden;
  const DropoutSeed seed = c.dropout.at(key_.site, key_.layer);
  const Tensor sums = bias_sums(c);
  const bool fused = sum.norm && c.fusions().bias_sums;
  if (sum.norm) {
    const AddedBranch added{seed, fused ? sums : Tensor()};
    sum.norm->backward(c, sum.a, sum.carried, flow, &added);
  } else if (dropout > 0) {
    apply_dropout(c.compute, flow.residual, {dropout, seed}, Out(flow.branch));
  }
  if (sums.defined() && !fused) backward_bias(c, flow.at_branch(c.dropout), 0, sums);
}

// Gets the column sums of the gradient at the output.
Tensor Projection::bias_sums(const LayerContext& c) const {
  if (!bias.value.defined()) return {};
  return sums_.defined() && c.qkv_bias_sums ? sums_ : bias.gradient;
}

}  // namespace tally::train
