#include "src/ops/attention/flash/flash.cuh"
#include "src/ops/attention/flash/tiles_float64.cuh"

namespace tally::train::cuda {

FlashKernels flash_float64(bool wide) {
  return wide ? flash_kernels<Float64TensorCores, 128>() : flash_kernels<Float64TensorCores, 64>();
}

}  // namespace tally::train::cuda
