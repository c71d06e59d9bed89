#include "src/ops/attention/flash/flash.cuh"

namespace tally::train::cuda {

FlashKernels flash_ieee(bool wide) {
  return wide ? flash_kernels<Ieee, 128>() : flash_kernels<Ieee, 64>();
}

}  // namespace tally::train::cuda
