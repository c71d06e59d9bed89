// y = x w^T + b, with x[M,in], w[out,in], b[out], y[M,out]. A layer may have no b.
#pragma once

#include <string>

#include "src/nn/context.h"
#include "src/nn/parameters.h"

namespace tally::train {

struct Linear {
  ParamGrad weight, bias;

  Linear() = default;
  // `name`.weight of the table, and `name`.bias with `has_bias`.
  Linear(const ParameterTable& table, const std::string& name, bool has_bias = true)
      : weight(table.get(name + ".weight")),
        bias(has_bias ? table.get(name + ".bias") : ParamGrad()) {}

  // Adds `residual`[M,out] where it is defined.
  void forward(const LayerContext& c, const Tensor& x, const Tensor& y,
               const Tensor& residual = Tensor()) const;
  // A row-parallel layer: this process's part of y, of which the sum over the processes is y. The
  // first process's part includes the bias.
  void forward_part(const LayerContext& c, const Tensor& x, const Tensor& y) const;
  // Adds `addend`[M,in] where it is defined.
  void backward_input(const LayerContext& c, const Tensor& dy, const Tensor& dx,
                      const Tensor& addend = Tensor()) const;
  // The weight's gradient only. The bias's gradient, the column sums of dy, is computed by other
  // kernels (Branch, SelfAttention). This GEMM may overlap with what follows: dy and x stay
  // untouched until LayerContext::side has been waited for.
  void backward_weight(const LayerContext& c, const Tensor& dy, const Tensor& x) const;
  // Both gradients of a column-parallel layer. x has all tokens, and may still be on its way
  // (TensorParallel::start_gather); dx is this process's part of them. With
  // sequence parallelism the sum of dx over the processes overlaps with the weight's gradient.
  // `addend`[M,in], where defined, is added to dx, in one process alone.
  void backward(const LayerContext& c, const Tensor& dy, const Tensor& x, const Tensor& dx,
                const Tensor& addend = Tensor()) const;
  // All three gradients of a layer that one process has, as heads need them.
  void backward_whole(const LayerContext& c, const Tensor& dy, const Tensor& x,
                      const Tensor& dx) const;
};

// The weight's gradient of a Linear without bias; `accumulate` as LayerContext's, unless the
// gradient is one that every pass overwrites.
void backward_weight(const LayerContext& c, const Tensor& dy, const Tensor& x,
                     const ParamGrad& weight, bool accumulate);

}  // namespace tally::train
