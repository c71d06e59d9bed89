#include "src/ops/cuda/attention_one_pass.cuh"

namespace tally::train::cuda {

OnePassKernels one_pass_tf32x3(bool wide) {
  return wide ? one_pass_kernels<TensorCores<true>, 128>()
              : one_pass_kernels<TensorCores<true>, 64>();
}

}  // namespace tally::train::cuda
