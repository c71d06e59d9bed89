// The list of CUTLASS's kernels; each lies in a file of its own.
#include "src/ops/cuda/gemm_cutlass.h"

namespace tally::train::cuda {

#ifdef TALLY_CUTLASS
extern const FusedGeluKernel gelu_2x1, gelu_1x2;
extern const FusedGeluKernel dgelu_64x32, dgelu_64x64;

FusedGeluKernels gelu_forward_kernels() {
  static const FusedGeluKernel* const all[] = {&gelu_2x1, &gelu_1x2};
  return {all, 2};
}
FusedGeluKernels gelu_backward_kernels() {
  static const FusedGeluKernel* const all[] = {&dgelu_64x32, &dgelu_64x64};
  return {all, 2};
}
#else
FusedGeluKernels gelu_forward_kernels() {
  return {};
}
FusedGeluKernels gelu_backward_kernels() {
  return {};
}
#endif

}  // namespace tally::train::cuda
