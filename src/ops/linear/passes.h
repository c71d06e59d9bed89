// Kernels that several operations use; their launchers enqueue on the stream.
#pragma once

#include "src/device/cuda/cuda_stream.h"
#include "src/ops/linear/linear.h"

namespace tally::train::cuda {

// y[rows, cols] += b[cols]
void add_bias(CudaStream& s, const Tensor& b, const Tensor& y);
// y = gelu(pre); with b: pre += b first (written back). With SavedGelu::derivative, gelu'(pre)
// overwrites pre.
void gelu(CudaStream& s, const Tensor& b, const Tensor& pre, const Tensor& y, SavedGelu form,
          GeluKind kind);
// dpre = dy * gelu'(v) from what was saved of v, and db += column sums of dpre where db is defined.
// dpre may be dy or `saved`. Uses s.workspace().
void gelu_gradient(CudaStream& s, const Tensor& dy, const Tensor& saved, const Tensor& dpre,
                   const Tensor& db, SavedGelu form, GeluKind kind);
// db += column sums of dy, from column `first` on. Uses s.workspace().
void column_sums(CudaStream& s, const Tensor& dy, int64_t first, const Tensor& db);
// db[N] += sums[N], and out[K] += sums w[N,K] where it is defined
void row_times_matrix(CudaStream& s, const Tensor& sums, const Tensor& w, const Tensor& db,
                      const Tensor& out);
// first[i] += sum over p of parts[p, i], in the order of p. `second` and `third`, where defined,
// get the same from the arrays of parts that follow. parts: f32 (f64 for f64).
void add_parts(CudaStream& s, const void* parts, int64_t count, int64_t elements,
               const Tensor& first, const Tensor& second = Tensor(),
               const Tensor& third = Tensor());

}  // namespace tally::train::cuda
