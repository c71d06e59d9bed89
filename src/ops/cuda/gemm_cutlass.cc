// The list of CUTLASS's kernels; each lies in a file of its own.
#include "src/ops/cuda/gemm_cutlass.h"

#include "src/ops/cuda/exponential_product.h"

namespace tally::train::cuda {

#ifdef TALLY_CUTLASS
extern const FusedKernel bias_2x1, bias_1x2;
extern const FusedKernel bias_residual_2x1, bias_residual_1x2;
extern const FusedKernel gelu_2x1, gelu_1x2;
extern const FusedKernel dgelu_64x32, dgelu_64x64;
extern const FusedKernel gelu_slope_2x1, gelu_slope_1x2;
extern const FusedKernel times_slope_64x32, times_slope_64x64;
extern const ExponentialKernel exponential_128x128_2x1, exponential_128x128_1x2;
extern const ExponentialKernel exponential_64x256_2x1;

FusedKernels bias_kernels() {
  static const FusedKernel* const all[] = {&bias_2x1, &bias_1x2};
  return {all, 2};
}
FusedKernels bias_residual_kernels() {
  static const FusedKernel* const all[] = {&bias_residual_2x1, &bias_residual_1x2};
  return {all, 2};
}
FusedKernels gelu_forward_kernels(GeluKeeps keeps) {
  static const FusedKernel* const input[] = {&gelu_2x1, &gelu_1x2};
  static const FusedKernel* const slope[] = {&gelu_slope_2x1, &gelu_slope_1x2};
  return {keeps == GeluKeeps::slope ? slope : input, 2};
}
FusedKernels gelu_backward_kernels(GeluKeeps keeps) {
  static const FusedKernel* const input[] = {&dgelu_64x32, &dgelu_64x64};
  static const FusedKernel* const slope[] = {&times_slope_64x32, &times_slope_64x64};
  return {keeps == GeluKeeps::slope ? slope : input, 2};
}
ExponentialKernels exponential_kernels() {
  static const ExponentialKernel* const all[] = {&exponential_128x128_2x1, &exponential_128x128_1x2,
                                                 &exponential_64x256_2x1};
  return {all, 3};
}
#else
ExponentialKernels exponential_kernels() {
  return {};
}
FusedKernels bias_kernels() {
  return {};
}
FusedKernels bias_residual_kernels() {
  return {};
}
FusedKernels gelu_forward_kernels(GeluKeeps) {
  return {};
}
FusedKernels gelu_backward_kernels(GeluKeeps) {
  return {};
}
#endif

}  // namespace tally::train::cuda
