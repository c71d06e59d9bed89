#include "src/ops/attention/flash/flash.cuh"

namespace tally::train::cuda {

FlashKernels flash_tf32(bool wide) {
  return wide ? flash_kernels<TensorCores<false>, 128>() : flash_kernels<TensorCores<false>, 64>();
}

}  // namespace tally::train::cuda
