// Matrix products of a training step, with what is fused to them. Row-major; M rows are tokens.
//   x[M,K], w[N,K] (as PyTorch's Linear), b[N], y[M,N]
// x, w, b, y, dx: the compute type (f64, f32, bf16, f16). dw, db: the gradient type (f32 for bf16
// and f16, the compute type else). Accumulation is in f32 at least. Undefined tensors (data null)
// mean "none".
#pragma once

#include <cstdint>

#include "src/ops/stream.h"
#include "src/ops/tensor.h"

namespace tally::train {

// y = x w^T + b, and + residual[M,N] where it is defined (it may be y's memory).
void linear_forward(Stream& s, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
                    const Tensor& residual = Tensor());

// What a product with GELU keeps for its backward pass: GELU's input, or its slope there, rounded
// to the compute type. The slope makes the backward pass a multiplication; the input can make
// GELU's output again.
enum class GeluKeeps : uint8_t { input, slope };
// Which of them is faster on this device for x[M,K], w[N,K]: the slope where both passes have a
// kernel that is made for it. (By timing it was so at every size tried, bench/notes/gpu-step.md.)
GeluKeeps faster_gelu_keeps(Stream& s, DType type, int64_t n, int64_t k);

// Whether products of float32 may run on float64 tensor cores here (Stream::float64_products).
// Those of layers stay on every multiprocessor until their end.
bool float64_products_serve(Stream& s);

// v = x w^T + b, y = gelu(v), tanh form: 0.5 v (1 + tanh(sqrt(2/pi) (v + 0.044715 v^3))), and
// kept = v or gelu'(v).
void linear_gelu_forward(Stream& s, const Tensor& x, const Tensor& w, const Tensor& b,
                         const Tensor& kept, const Tensor& y, GeluKeeps keeps = GeluKeeps::input);

// y = gelu(pre): the second half of linear_gelu_forward, for activation recomputation.
void gelu_forward(Stream& s, const Tensor& pre, const Tensor& y);

// dx = dy w
void linear_backward_input(Stream& s, const Tensor& dy, const Tensor& w, const Tensor& dx);

// dpre = (dy w) * gelu'(v), and db += column sums of dpre where db is defined (b of the layer
// before). `dpre` may be the same memory as `kept`; it is faster where it is not.
void linear_backward_input_gelu(Stream& s, const Tensor& dy, const Tensor& w, const Tensor& kept,
                                const Tensor& dpre, const Tensor& db,
                                GeluKeeps keeps = GeluKeeps::input);

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

// x[i] *= factors[i].  x[M,K]: the compute type, factors[M]: f32 (f64 for f64)
void scale_rows(Stream& s, const Tensor& factors, const Tensor& x);

}  // namespace tally::train
