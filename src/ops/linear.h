// Matrix products of a training step, with what is fused to them. Row-major; M rows are tokens.
//   x[M,K], w[N,K] (as PyTorch's Linear), b[N], y[M,N]
// x, w, b, y, dx: the compute type (f64, f32, bf16, f16). dw, db: the gradient type (f32 for bf16
// and f16, the compute type else). Accumulation is in f32 at least. Undefined tensors (data null)
// mean "none".
#pragma once

#include "src/ops/stream.h"
#include "src/ops/tensor.h"

namespace tally::train {

// y = x w^T + b, and + residual[M,N] where it is defined (it may be y's memory).
void linear_forward(Stream& s, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
                    const Tensor& residual = Tensor());

// pre = x w^T + b, y = gelu(pre), tanh form: 0.5 v (1 + tanh(sqrt(2/pi) (v + 0.044715 v^3)))
void linear_gelu_forward(Stream& s, const Tensor& x, const Tensor& w, const Tensor& b,
                         const Tensor& pre, const Tensor& y);

// y = gelu(pre): the second half of linear_gelu_forward, for activation recomputation.
void gelu_forward(Stream& s, const Tensor& pre, const Tensor& y);

// dx = dy w
void linear_backward_input(Stream& s, const Tensor& dy, const Tensor& w, const Tensor& dx);

// dpre = (dy w) * gelu'(pre), and db += column sums of dpre where db is defined (b of the layer
// before). `dpre` may be the same memory as `pre`.
void linear_backward_input_gelu(Stream& s, const Tensor& dy, const Tensor& w, const Tensor& pre,
                                const Tensor& dpre, const Tensor& db);

// dw += dy^T x, or dw = dy^T x without `accumulate`; and db += column sums of dy where db is
// defined.
void linear_backward_weight(Stream& s, const Tensor& dy, const Tensor& x, const Tensor& dw,
                            const Tensor& db, bool accumulate = true);

// db[j] += sum over rows of dy[i, first + j]: a range of the columns.
void linear_backward_bias(Stream& s, const Tensor& dy, int64_t first, const Tensor& db);

// From the column sums of dy to those of dx = dy w, without reading either:
//   db += sums, and dbx += sums w where it is defined.  sums[N], db[N], dbx[K]: the gradient type
void linear_backward_bias_input(Stream& s, const Tensor& sums, const Tensor& w, const Tensor& db,
                                const Tensor& dbx);

}  // namespace tally::train
