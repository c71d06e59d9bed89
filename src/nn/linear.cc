#include "src/nn/linear.h"

#include "src/nn/gemm_calls.h"

namespace tally::train {
namespace {

struct PartInFp8 {
  Tensor memory;  // has room for all tokens
  DType format;
  Tensor scale;
};
// Casts this process's tokens to their place among all.
Tensor cast_part(const LayerContext& c, const Tensor& part, const Tensor& amaxes,
                 const PartInFp8& to) {
  const Tensor own = c.tensor.place_of_cast(to.memory, to.format, part);
  fp8_cast(c.compute, part, amaxes, {own, {}, to.scale, {}, Fp8Scaling::tensor});
  return own;
}

}  // namespace

void Linear::cast_weight(const LayerContext& c) const {
  if (c.fp8.gathered && weight.fp8.amax.defined())
    return fp8_complete(c.compute, weight.fp8.amax, fp8);
  const Fp8Magnitudes magnitudes{c.tensor, c.fp8, fp8.scaling, division != Division::whole};
  fp8_cast(c.compute, weight.value, magnitudes.find(c.compute, weight.value, false, c.fp8.amaxes),
           fp8);
}

Fp8Magnitudes Linear::magnitudes_of_input(const LayerContext& c) const {
  return {c.tensor, c.fp8, c.fp8.recipe.activations, division == Division::columns};
}

Fp8Magnitudes Linear::magnitudes_of_gradient(const LayerContext& c) const {
  return {c.tensor, c.fp8, c.fp8.recipe.gradients, division == Division::rows};
}

Out Linear::amax_of_input(const LayerContext& c, const Tensor& amaxes) const {
  return in_fp8() ? Out(magnitudes_of_input(c).own(amaxes)) : Out();
}

Out Linear::amax_of_gradient(const LayerContext& c) const {
  return in_fp8() ? Out(magnitudes_of_gradient(c).own(c.fp8.amaxes)) : Out();
}

bool Linear::gathers_casts(const LayerContext& c, Fp8Scaling scaling) const {
  return in_fp8() && c.tensor.sequence && scaling == Fp8Scaling::tensor;
}

LinearInput Linear::gather_input(const LayerContext& c, const Tensor& part,
                                 const Tensor& amaxes) const {
  const Fp8Scaling scaling = c.fp8.recipe.activations;
  if (!gathers_casts(c, scaling)) return {c.tensor.gather(c.compute, part), amaxes};
  const Fp8Magnitudes of_parts{c.tensor, c.fp8, scaling, true};
  const Tensor own = cast_part(c, part, of_parts.find(c.compute, part, false, amaxes),
                               {c.tensor.gathered_casts, c.fp8.forward, c.fp8.x_scales});
  return {c.tensor.gather_to(c.compute, c.tensor.gathered_casts, own), amaxes};
}

LinearInput Linear::start_gather_input(const LayerContext& c, const Tensor& part,
                                       const Tensor& amaxes) const {
  if (!gathers_casts(c, c.fp8.recipe.activations))
    return {c.tensor.start_gather(c.compute, part), amaxes};
  const Tensor own =
      cast_part(c, part, amaxes, {c.tensor.second_casts, c.fp8.forward, c.fp8.x_scales});
  return {c.tensor.start_gather_to(c.compute, c.tensor.second_casts, own), amaxes};
}

OutputGradient Linear::gather_gradient(const LayerContext& c, const Tensor& part) const {
  const Fp8Scaling scaling = c.fp8.recipe.gradients;
  if (!gathers_casts(c, scaling)) return gradient_at_output(c, c.tensor.gather(c.compute, part));
  const Fp8Magnitudes of_parts{c.tensor, c.fp8, scaling, true};
  const Tensor amaxes = of_parts.find(c.compute, part, false, c.fp8.amaxes);
  const Tensor rows = c.tensor.gather_to(
      c.compute, c.tensor.gradient_casts,
      cast_part(c, part, amaxes, {c.tensor.gradient_casts, c.fp8.backward, c.fp8.dy_row_scales}));
  Fp8Copies copies = c.fp8.copies_of_dy(rows.dim(0), rows.dim(1));
  copies.rows = rows;
  fp8_complete(c.compute, amaxes, copies);
  return {{}, copies};
}

void Linear::forward_fp8(const LayerContext& c, const LinearInput& in, const Tensor& y,
                         const Tensor& added, const Tensor& residual) const {
  // This comes first: own() lies where the weight's magnitude goes.
  Tensor amaxes;
  if (!in.is_cast())
    amaxes = magnitudes_of_input(c).find(c.compute, in.x, in.amax_found, in.amaxes);
  if (c.fp8.casts_weights) cast_weight(c);
  Fp8Copies x = c.fp8.rows_of_x(in.x.dim(0), in.x.dim(1));
  if (in.is_cast()) {
    x.rows = in.x;
  } else {
    fp8_cast(c.compute, in.x, amaxes, x);
  }
  // The sum over the tensor cores' products may be the fast one: only gradients add up over many
  // steps.
  call_gemm(fp8_gemm, c, rows_of(x), rows_of(fp8), Out(y),
            {added, residual, c.fp8.recipe.fast_forward});
}

void Linear::forward(const LayerContext& c, const LinearInput& x, const Tensor& y,
                     const Tensor& residual) const {
  if (in_fp8()) return forward_fp8(c, x, y, bias.value, residual);
  call_gemm(linear_forward, c, x.x, {weight.value, bias.value}, Out(y), residual);
}

void Linear::forward_activation(const LayerContext& c, const LinearInput& x,
                                const SavedActivation& f, const Tensor& act) const {
  if (!in_fp8())
    return call_gemm(linear_activation_forward, c, x.x, {weight.value, bias.value}, f.form,
                     {Out(f.saved), Out(act)});
  forward_fp8(c, x, f.saved, bias.value, {});
  mlp_activation_forward(c.compute, f.saved, Out(act), f.form.kind, f.amax);
}

void Linear::forward_row_parallel(const LayerContext& c, const LinearInput& x,
                                  const Tensor& y) const {
  const Tensor added = c.tensor.shard() == 0 ? bias.value : Tensor();
  const Tensor partial = c.tensor.partial_of(y);
  if (in_fp8()) {
    forward_fp8(c, x, partial, added, {});
  } else {
    call_gemm(linear_forward, c, x.x, {weight.value, added}, Out(partial), {});
  }
  c.tensor.reduce(c.compute, y);
}

OutputGradient Linear::gradient_at_output(const LayerContext& c, const Tensor& dy,
                                          bool amax_found) const {
  if (!in_fp8()) return {dy, {}};
  const Fp8Magnitudes magnitudes = magnitudes_of_gradient(c);
  if (magnitudes.gathers()) c.tensor.wait(c.compute);  // one exchange of a group at a time
  const Tensor amaxes = magnitudes.find(c.compute, dy, amax_found, c.fp8.amaxes);
  const Fp8Copies copies = c.fp8.copies_of_dy(dy.dim(0), dy.dim(1));
  fp8_cast(c.compute, dy, amaxes, copies);
  return {dy, copies};
}

void Linear::backward_input(const LayerContext& c, const OutputGradient& dy, const Tensor& dx,
                            const Tensor& addend) const {
  if (in_fp8())
    return call_gemm(fp8_gemm, c, rows_of(dy.fp8), columns_of(fp8), Out(dx), {{}, addend, false});
  call_gemm(linear_backward_input, c, dy.dy, weight.value, Out(dx), addend);
}

void Linear::backward_input_activation(const LayerContext& c, const OutputGradient& dy,
                                       const Linear& before, const SavedActivation& f,
                                       const Tensor& dpre) const {
  if (!in_fp8())
    return call_gemm(linear_backward_input_activation, c, dy.dy, weight.value, {f.saved, f.form},
                     {Out(dpre), Out(before.bias.gradient)});
  backward_input(c, dy, dpre);
  mlp_activation_backward(c.compute, dpre, f.saved, f.form.kind,
                          {Out(dpre), Out(before.bias.gradient), f.amax});
}

void Linear::backward_weight_fp8(const LayerContext& c, const OutputGradient& dy,
                                 const LinearInput& in, bool accumulate) const {
  Fp8Copies x = c.fp8.columns_of_x(in.x.dim(0), in.x.dim(1));
  if (in.is_cast()) {
    x.rows = in.x;
    x.row_scales = x.column_scales;
    fp8_complete(c.compute, in.amaxes, x);
  } else {
    const bool gathered = magnitudes_of_input(c).gathers();
    fp8_cast(c.compute, in.x, gathered ? in.amaxes : in.amaxes.rows(0, 1), x);
  }
  call_gemm(fp8_gemm, c, columns_of(dy.fp8), columns_of(x), Out(weight.gradient),
            {{}, accumulate ? weight.gradient : Tensor(), false});
}

void Linear::backward_weight(const LayerContext& c, const OutputGradient& dy, const LinearInput& x,
                             bool adds) const {
  const bool accumulate = (c.accumulate || adds) && !weight.overwrite;
  if (in_fp8()) return backward_weight_fp8(c, dy, x, accumulate);
  call_gemm(linear_backward_weight, c, dy.dy, x.x, {Out(weight.gradient), {}, accumulate});
}

void Linear::backward_bias(const LayerContext& c, const Tensor& dy, int64_t first,
                           const Tensor& sums) {
  linear_backward_bias(c.compute, dy, first, Out(sums));
}

void Linear::backward_bias_from_sums(const LayerContext& c, const Tensor& sums,
                                     const Tensor& dbx) const {
  linear_backward_bias_input(c.compute, sums, weight.value, Out(bias.gradient), Out(dbx));
}

void Linear::backward(const LayerContext& c, const OutputGradient& gradient, const LinearInput& x,
                      const Tensor& dx, const Tensor& addend) const {
  if (!c.tensor.divides()) {
    backward_weight(c, gradient, x);
    return backward_input(c, gradient, dx, addend);
  }
  backward_input(c, gradient, c.tensor.partial_of(dx));
  c.tensor.wait(c.compute);  // for x
  c.tensor.start_reduce(c.compute, dx);
  backward_weight(c, gradient, x);
  c.tensor.wait(c.compute);
}

void Linear::backward_whole(const LayerContext& c, const Tensor& dy, const Tensor& x,
                            const Tensor& dx, bool adds) const {
  call_gemm(linear_backward_weight, c, dy, x,
            {Out(weight.gradient), Out(bias.gradient), c.accumulate || adds});
  call_gemm(linear_backward_input, c, dy, weight.value, Out(dx), {});
}

}  // namespace tally::train
