#include "src/nn/norm.h"

#include "src/ops/norm/norm.h"

namespace tally::train {

// y under the mask of the embeddings' dropout, and its gradient alike.
void Norm::mask_output(const LayerContext& c, const Tensor& y) const {
  if (drops_output_ && c.dropout.hidden > 0)
    apply_dropout(c.compute, y, c.dropout.hidden, c.dropout.at(DropoutSite::embedding), y);
}

void Norm::forward(const LayerContext& c, const NormActivations& a) const {
  layernorm_forward(c.compute, a.r, weight_.value, bias_.value, epsilon_, a.y, a.mean, a.rstd);
  mask_output(c, a.y);
}

void Norm::backward(const LayerContext& c, const NormActivations& a, bool carried,
                    const BackwardFlow& flow, const AddedBranch* added) const {
  mask_output(c, flow.normed);
  const bool masked = added && c.dropout.hidden > 0;
  layernorm_backward(c.compute, flow.normed, a.r, weight_.value, a.mean, a.rstd,
                     carried ? flow.residual : Tensor(), flow.residual, weight_.gradient,
                     bias_.gradient, c.dropout.hidden, masked ? added->seed : DropoutSeed(),
                     masked ? flow.branch : Tensor(), c.workspace,
                     added ? added->bias_gradient : Tensor());
}

void Norm::add_residual_norm(const LayerContext& c, const Tensor& residual, const Tensor& delta,
                             DropoutSeed seed, const NormActivations& a) const {
  residual_layernorm_forward(c.compute, residual, delta, weight_.value, bias_.value, epsilon_,
                             c.dropout.hidden, seed, a.r, a.y, a.mean, a.rstd);
}

}  // namespace tally::train
