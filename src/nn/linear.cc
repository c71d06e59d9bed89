#include "src/nn/linear.h"

namespace tally::train {

void Linear::forward(const LayerContext& c, const Tensor& x, const Tensor& y,
                     const Tensor& residual) const {
  linear_forward(c.compute, x, {weight.value, bias.value}, Out(y), residual);
}

void Linear::forward_gelu(const LayerContext& c, const Tensor& x, const SavedActivation& form,
                          const Tensor& act) const {
  linear_gelu_forward(c.compute, x, {weight.value, bias.value}, form.gelu,
                      {Out(form.saved), Out(act)});
}

void Linear::forward_row_parallel(const LayerContext& c, const Tensor& x, const Tensor& y) const {
  const Tensor added = c.tensor.shard() == 0 ? bias.value : Tensor();
  linear_forward(c.compute, x, {weight.value, added}, Out(c.tensor.partial_of(y)), {});
  c.tensor.reduce(c.compute, y);
}

void Linear::backward_input(const LayerContext& c, const Tensor& dy, const Tensor& dx,
                            const Tensor& addend) const {
  linear_backward_input(c.compute, dy, weight.value, Out(dx), addend);
}

void Linear::backward_input_gelu(const LayerContext& c, const Tensor& dy, const Linear& before,
                                 const SavedActivation& form, const Tensor& dpre) const {
  linear_backward_input_gelu(c.compute, dy, weight.value, {form.saved, form.gelu},
                             {Out(dpre), Out(before.bias.gradient)});
}

void Linear::backward_weight(const LayerContext& c, const Tensor& dy, const Tensor& x,
                             bool adds) const {
  const bool accumulate = (c.accumulate || adds) && !weight.overwrite;
  const auto gemm = [&](Stream& stream) {
    linear_backward_weight({stream, c.compute.options}, dy, x,
                           {Out(weight.gradient), {}, accumulate});
  };
  if (c.overlap_weight_gradients) {
    c.side->launch(gemm);
  } else {
    gemm(c.compute.stream);
  }
}

void Linear::backward_bias(const LayerContext& c, const Tensor& dy, int64_t first,
                           const Tensor& sums) {
  linear_backward_bias(c.compute, dy, first, Out(sums));
}

void Linear::backward_bias_from_sums(const LayerContext& c, const Tensor& sums,
                                     const Tensor& dbx) const {
  linear_backward_bias_input(c.compute, sums, weight.value, Out(bias.gradient), Out(dbx));
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
                            const Tensor& dx, bool adds) const {
  linear_backward_weight(c.compute, dy, x,
                         {Out(weight.gradient), Out(bias.gradient), c.accumulate || adds});
  backward_input(c, dy, dx);
}

}  // namespace tally::train
