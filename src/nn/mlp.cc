#include "src/nn/mlp.h"

#include "src/ops/swiglu/swiglu.h"

namespace tally::train {

void Mlp::forward(const LayerContext& c, const Tensor& x, const MlpActivations& a,
                  const Tensor& residual, const NormedSum& sum) const {
  activate(c, x, a);
  projection_.add_to(c, {a.act, a.act_amaxes, true}, residual, sum);
}

void Mlp::activate(const LayerContext& c, const Tensor& x, const MlpActivations& a) const {
  const LinearInput all = fc_.gather_input(c, x, a.x_amaxes);
  if (gated()) {
    fc_.forward(c, all, a.saved);
    return recompute_act(c, a);
  }
  fc_.forward_activation(c, all, {activation_, a.saved, projection_.amax_of_input(c, a.act_amaxes)},
                         a.act);
}

void Mlp::recompute_act(const LayerContext& c, const MlpActivations& a) const {
  const Out amax = projection_.amax_of_input(c, a.act_amaxes);
  if (gated()) return swiglu_forward(c.compute, a.saved, Out(a.act), amax);
  mlp_activation_forward(c.compute, a.saved, Out(a.act), activation_.kind, amax);
}

Tensor Mlp::backward_activation(const LayerContext& c, const OutputGradient& dy,
                                const MlpActivations& a) const {
  if (gated()) {
    projection_.backward_input(c, dy, a.act);
    swiglu_backward(c.compute, a.act, a.saved, Out(a.saved), fc_.amax_of_gradient(c));
    return a.saved;
  }
  // The output has been read for the last time: the gradient takes its memory.
  projection_.backward_input_activation(c, dy, fc_, {activation_, a.saved, fc_.amax_of_gradient(c)},
                                        a.act);
  return a.act;
}

void Mlp::backward(const LayerContext& c, const Tensor& x, const MlpActivations& a,
                   const BackwardFlow& flow) const {
  const OutputGradient dy = projection_.gather_gradient(c, flow.at_branch(c.dropout));
  const LinearInput all = fc_.start_gather_input(c, x, a.x_amaxes);
  projection_.backward_weight(c, dy, {a.act, a.act_amaxes});
  const Tensor dpre = backward_activation(c, dy, a);
  const OutputGradient at_fc = fc_.gradient_at_output(c, dpre, true);
  fc_.backward(c, at_fc, all, flow.normed, flow.at_branch_input());
}

}  // namespace tally::train
