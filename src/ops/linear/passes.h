// Kernels between the GEMMs of layers; their launchers enqueue on the stream.
#pragma once

#include "src/device/cuda/cuda_stream.h"
#include "src/ops/linear/linear.h"

namespace tally::train::cuda {

// y[rows, cols] += b[cols]
void add_bias(CudaStream& s, const In& b, const Out& y);
// y = gelu(pre), and the largest magnitude of y where `amax` is defined
struct GeluResult {
  Out y, amax;
};
void gelu(CudaStream& s, const In& pre, const GeluResult& out, GeluKind kind);
// The same with pre in out.saved; with b: pre += b first (written back). With SavedGelu::derivative,
// gelu'(pre) overwrites pre.
void bias_gelu(CudaStream& s, const In& b, const GeluOutputs& out, GeluForm form);
// dpre = dy * gelu'(v) from what was saved of v, and db and amax of dpre where they are defined.
// dpre may be dy or what was saved. Uses s.workspace().
void gelu_gradient(CudaStream& s, const In& dy, const GeluInput& gelu, const GeluPass& out);
// db[N] += sums[N], and out[K] += sums w[N,K] where it is defined
void row_times_matrix(CudaStream& s, const In& sums, const In& w, const Out& db, const Out& out);

}  // namespace tally::train::cuda
