#include "src/nn/mlp.h"

namespace tally::train {

void Mlp::forward(const LayerContext& c, const Tensor& x, const MlpActivations& a) const {
  linear_gelu_forward(c.compute, c.tensor.gather(c.compute, x), fc_.weight.value, fc_.bias.value,
                      a.saved, a.act, gelu_.saved, gelu_.kind);
}

void Mlp::recompute_act(const LayerContext& c, const MlpActivations& a) const {
  gelu_forward(c.compute, a.saved, a.act, gelu_.kind);
}

void Mlp::backward(const LayerContext& c, const Tensor& x, const MlpActivations& a,
                   const Dropout& dropout, const BackwardFlow& flow) const {
  const Tensor dy = c.tensor.gather(c.compute, flow.at_branch(dropout));
  const Tensor all = c.tensor.start_gather(c.compute, x);
  projection_.backward_weight(c, dy, a.act);
  // GELU's output has been read for the last time, unless its reader runs on the side stream.
  const Tensor& dpre = c.overlap_weight_gradients ? a.saved : a.act;
  linear_backward_input_gelu(c.compute, dy, projection_.weight.value, a.saved, dpre,
                             fc_.bias.gradient, gelu_.saved, gelu_.kind);
  fc_.backward(c, dpre, all, flow.normed, flow.at_branch_input());
  c.side->wait(1);  // the norm below overwrites dy; the GEMM that reads dpre may still run
}

}  // namespace tally::train
