// Kernels that several operations use; their launchers enqueue on the stream.
#pragma once

#include "src/ops/cuda/cuda_stream.h"

namespace tally::train::cuda {

// Whether this build's kernels can run on the current device.
bool has_device_code();

// y[rows, cols] += b[cols]
void add_bias(CudaStream& s, const Tensor& b, const Tensor& y);
// y = gelu(pre); with b: pre += b first (written back).
void gelu(CudaStream& s, const Tensor& b, const Tensor& pre, const Tensor& y);
// dpre = dy * gelu'(pre), and db += column sums of dpre where db is defined. dpre may be dy or pre.
// Uses s.workspace().
void gelu_backward(CudaStream& s, const Tensor& dy, const Tensor& pre, const Tensor& dpre,
                   const Tensor& db);
// db += column sums of dy. Uses s.workspace().
void column_sums(CudaStream& s, const Tensor& dy, const Tensor& db);
// first[i] += sum over p of parts[p, i], in the order of p, and second[i] += the same of the array
// of parts that follows; parts in f32 (f64 for f64). `second` may be undefined.
void add_parts(CudaStream& s, const void* parts, int64_t count, int64_t elements,
               const Tensor& first, const Tensor& second);

}  // namespace tally::train::cuda
