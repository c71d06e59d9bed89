#include "src/nn/linear.h"

#include "src/ops/linear/linear.h"

namespace tally::train {

void Linear::forward(const LayerContext& c, const Tensor& x, const Tensor& y,
                     const Tensor& residual) const {
  linear_forward(c.compute, x, weight.value, bias.value, y, residual);
}

void Linear::forward_part(const LayerContext& c, const Tensor& x, const Tensor& y) const {
  linear_forward(c.compute, x, weight.value, c.tensor.shard() == 0 ? bias.value : Tensor(), y);
}

void Linear::backward_input(const LayerContext& c, const Tensor& dy, const Tensor& dx,
                            const Tensor& addend) const {
  linear_backward_input(c.compute, dy, weight.value, dx, addend);
}

void Linear::backward_weight(const LayerContext& c, const Tensor& dy, const Tensor& x) const {
  train::backward_weight(c, dy, x, weight, c.accumulate);
}

void Linear::backward(const LayerContext& c, const Tensor& dy, const Tensor& x, const Tensor& dx,
                      const Tensor& addend) const {
  if (!c.tensor.divides()) {
    backward_weight(c, dy, x);
    return backward_input(c, dy, dx, addend);
  }
  backward_input(c, dy, c.tensor.partial_of(dx));
  c.tensor.wait(c.compute);  // for x
  c.tensor.start_reduce(c.compute, dx);
  backward_weight(c, dy, x);
  c.tensor.wait(c.compute);
}

void Linear::backward_whole(const LayerContext& c, const Tensor& dy, const Tensor& x,
                            const Tensor& dx) const {
  linear_backward_weight(c.compute, dy, x, weight.gradient, bias.gradient, c.accumulate);
  backward_input(c, dy, dx);
}

void backward_weight(const LayerContext& c, const Tensor& dy, const Tensor& x,
                     const ParamGrad& weight, bool accumulate) {
  if (weight.overwrite) accumulate = false;
  const auto gemm = [&](Stream& stream) {
    linear_backward_weight({stream, c.compute.options}, dy, x, weight.gradient, Tensor(),
                           accumulate);
  };
  if (c.overlap_weight_gradients) {
    c.side->launch(gemm);
  } else {
    gemm(c.compute.stream);
  }
}

}  // namespace tally::train
