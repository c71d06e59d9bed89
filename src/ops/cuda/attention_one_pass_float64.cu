#include "src/ops/cuda/attention_one_pass.cuh"
#include "src/ops/cuda/attention_tiles_float64.cuh"

namespace tally::train::cuda {

OnePassKernels one_pass_float64(bool wide) {
  return wide ? one_pass_kernels<Float64TensorCores, 128>()
              : one_pass_kernels<Float64TensorCores, 64>();
}

}  // namespace tally::train::cuda
