// Replaces the kernels in builds without code for Hopper GPUs.
#include "src/ops/attention/hopper/short_kernels.h"

namespace tally::train::cuda::hopper {

bool built() {
  return false;
}
cudaError_t forward(const Forward&, DType, int, cudaStream_t) {
  return cudaErrorNotSupported;
}
cudaError_t prepare(const Backward&, DType, cudaStream_t) {
  return cudaErrorNotSupported;
}
cudaError_t multiply(const Backward&, DType, int, cudaStream_t) {
  return cudaErrorNotSupported;
}
cudaError_t finish(const Backward&, DType, cudaStream_t) {
  return cudaErrorNotSupported;
}
cudaError_t short_forward(const ShortForward&, DType, int, cudaStream_t) {
  return cudaErrorNotSupported;
}
cudaError_t short_backward(const ShortBackward&, DType, int, cudaStream_t) {
  return cudaErrorNotSupported;
}

}  // namespace tally::train::cuda::hopper
