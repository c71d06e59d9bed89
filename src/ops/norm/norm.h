// LayerNorm over the last dimension, alone or with the residual addition that comes before it.
//   x[M,C], gamma[C], beta[C], y[M,C]; mean[M], rstd[M] (f32; f64 for f64) kept for the backward
//   pass
#pragma once

#include "src/device/step_state.h"
#include "src/device/stream.h"
#include "src/device/tensor.h"

namespace tally::train {

void layernorm_forward(Stream& s, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                       double epsilon, const Tensor& y, const Tensor& mean, const Tensor& rstd);

// r = x + dropout(delta); y = layernorm(r). Dropout with probability `dropout` drawn from `seed`.
void residual_layernorm_forward(Stream& s, const Tensor& x, const Tensor& delta,
                                const Tensor& gamma, const Tensor& beta, double epsilon,
                                double dropout, DropoutSeed seed, const Tensor& r, const Tensor& y,
                                const Tensor& mean, const Tensor& rstd);

// dx = residual_grad (where defined) + d(layernorm)/dx . dy; dgamma, dbeta (gradient type) are
// added to. Where `ddelta` is defined it gets dx with the mask of the residual's dropout applied
// (the gradient of `delta` above); without dropout the caller uses dx itself. dx may be
// residual_grad's memory. Where `dbias` is defined (gradient type) the column sums of ddelta, or of
// dx where ddelta is not defined, are added to it: the gradient of the bias that went into `delta`.
// `workspace`: layernorm_workspace() bytes.
void layernorm_backward(Stream& s, const Tensor& dy, const Tensor& x, const Tensor& gamma,
                        const Tensor& mean, const Tensor& rstd, const Tensor& residual_grad,
                        const Tensor& dx, const Tensor& dgamma, const Tensor& dbeta, double dropout,
                        DropoutSeed seed, const Tensor& ddelta, const Tensor& workspace,
                        const Tensor& dbias = Tensor());
size_t layernorm_workspace(Stream& s, int64_t rows, int64_t columns);

}  // namespace tally::train
