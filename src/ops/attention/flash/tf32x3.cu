#include "src/ops/attention/flash/flash.cuh"

namespace tally::train::cuda {

FlashKernels flash_tf32x3(bool wide) {
  return wide ? flash_kernels<TensorCores<true>, 128>() : flash_kernels<TensorCores<true>, 64>();
}

}  // namespace tally::train::cuda
