// Kernels between the GEMMs of layers; their launchers enqueue on the stream.
#pragma once

#include "src/device/cuda/cuda_stream.h"
#include "src/ops/linear/linear.h"

namespace tally::train::cuda {

// y[rows, cols] += b[cols]
void add_bias(CudaStream& s, const In& b, const Out& y);
// y = f(pre), and the largest magnitude of y where `amax` is defined
struct ActivationResult {
  Out y, amax;
};
void activation(CudaStream& s, const In& pre, const ActivationResult& out, MlpActivation kind);
// The same with pre in out.saved; with b: pre += b first (written back). With
// SavedValue::derivative, f'(pre) overwrites pre.
void bias_activation(CudaStream& s, const In& b, const ActivationOutputs& out, ActivationForm form);
// dpre = dy * f'(v) from what was saved of v, and db and amax of dpre where they are defined.
// dpre may be dy or what was saved. Uses s.workspace().
void activation_gradient(CudaStream& s, const In& dy, const ActivationInput& f,
                         const ActivationPass& out);
// db[N] += sums[N], and out[K] += sums w[N,K] where it is defined
void row_times_matrix(CudaStream& s, const In& sums, const In& w, const Out& db, const Out& out);

}  // namespace tally::train::cuda
