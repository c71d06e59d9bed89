#include "src/ops/cuda/attention_one_pass.cuh"

namespace tally::train::cuda {

OnePassKernels one_pass_ieee(bool wide) {
  return wide ? one_pass_kernels<Ieee, 128>() : one_pass_kernels<Ieee, 64>();
}

}  // namespace tally::train::cuda
