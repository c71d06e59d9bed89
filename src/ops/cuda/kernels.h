// Kernels that several operations use; their launchers enqueue on the stream.
#pragma once

#include "src/ops/cuda/cuda_stream.h"
#include "src/ops/linear.h"

namespace tally::train::cuda {

// Whether this build's kernels can run on the current device.
bool has_device_code();

// y[rows, cols] += b[cols]
void add_bias(CudaStream& s, const Tensor& b, const Tensor& y);
// y = gelu(pre); with b: pre += b first (written back). With GeluKeeps::slope gelu'(pre) takes the
// place of pre.
void gelu(CudaStream& s, const Tensor& b, const Tensor& pre, const Tensor& y, GeluKeeps keeps);
// dpre = dy * gelu'(v) from what was kept of v, and db += column sums of dpre where db is defined.
// dpre may be dy or `kept`. Uses s.workspace().
void gelu_backward(CudaStream& s, const Tensor& dy, const Tensor& kept, const Tensor& dpre,
                   const Tensor& db, GeluKeeps keeps);
// db += column sums of dy, from column `first` on. Uses s.workspace().
void column_sums(CudaStream& s, const Tensor& dy, int64_t first, const Tensor& db);
// db[N] += sums[N], and out[K] += sums w[N,K] where it is defined
void product_row(CudaStream& s, const Tensor& sums, const Tensor& w, const Tensor& db,
                 const Tensor& out);
// first[i] += sum over p of parts[p, i], in the order of p, and second[i] and third[i] += the same
// of the arrays of parts that follow; parts in f32 (f64 for f64). `second` and `third` may be
// undefined.
void add_parts(CudaStream& s, const void* parts, int64_t count, int64_t elements,
               const Tensor& first, const Tensor& second = Tensor(),
               const Tensor& third = Tensor());

}  // namespace tally::train::cuda
