#include "src/nn/norm.h"

#include "src/ops/norm/norm.h"

namespace tally::train {

// y under the mask of the embeddings' dropout, and its gradient alike.
void Norm::mask_output(const LayerContext& c, const Tensor& y) const {
  if (drops_output_ && c.dropout.hidden > 0)
    apply_dropout(c.compute, y, {c.dropout.hidden, c.dropout.at(DropoutSite::embedding)}, Out(y));
}

void Norm::forward(const LayerContext& c, const NormActivations& a) const {
  layernorm_forward(c.compute, a.r, {weight_.value, bias_.value, epsilon_},
                    {Out(a.y), Out(a.mean), Out(a.rstd)});
  mask_output(c, a.y);
}

void Norm::backward(const LayerContext& c, const NormActivations& a, bool carried,
                    const BackwardFlow& flow, const AddedBranch* added) const {
  mask_output(c, flow.normed);
  const bool masked = added && c.dropout.hidden > 0;
  const NormOperands in{.dy = flow.normed,
                        .x = a.r,
                        .gamma = weight_.value,
                        .mean = a.mean,
                        .rstd = a.rstd,
                        .residual_grad = carried ? flow.residual : Tensor()};
  const NormGradients out{.dx = Out(flow.residual),
                          .dgamma = Out(weight_.gradient),
                          .dbeta = Out(bias_.gradient),
                          .dbias = Out(added ? added->bias_gradient : Tensor()),
                          .ddelta = Out(masked ? flow.branch : Tensor()),
                          .mask = {c.dropout.hidden, masked ? added->seed : DropoutSeed()}};
  layernorm_backward(c.compute, in, out);
}

void Norm::add_residual_norm(const LayerContext& c, const Tensor& residual, const Tensor& delta,
                             DropoutSeed seed, const NormActivations& a) const {
  residual_layernorm_forward(c.compute, {residual, delta, {c.dropout.hidden, seed}},
                             {weight_.value, bias_.value, epsilon_}, Out(a.r),
                             {Out(a.y), Out(a.mean), Out(a.rstd)});
}

}  // namespace tally::train
