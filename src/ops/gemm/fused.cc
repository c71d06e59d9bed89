// The list of the CUTLASS kernels. fused_instances.cmake makes a source file of each.
#include "src/ops/gemm/fused.h"

#include "src/ops/loss/fused_gemm.h"

namespace tally::train::cuda {

#ifdef TALLY_CUTLASS
extern const FusedKernel bias_2x1, bias_1x2;
extern const FusedKernel bias_residual_2x1, bias_residual_1x2;
extern const FusedKernel gelu_2x1, gelu_1x2;
extern const FusedKernel gelu_derivative_2x1, gelu_derivative_1x2;
extern const FusedKernel erf_gelu_derivative_2x1, erf_gelu_derivative_1x2;
extern const FusedKernel gelu_gradient_64x32, gelu_gradient_64x64;
extern const FusedKernel times_derivative_64x32, times_derivative_64x64;
extern const CrossEntropyKernel cross_entropy_128x128_2x1, cross_entropy_128x128_1x2;
extern const CrossEntropyKernel cross_entropy_64x256_2x1;

FusedKernels bias_kernels() {
  static const FusedKernel* const all[] = {&bias_2x1, &bias_1x2};
  return {all, 2};
}
FusedKernels bias_residual_kernels() {
  static const FusedKernel* const all[] = {&bias_residual_2x1, &bias_residual_1x2};
  return {all, 2};
}
FusedKernels gelu_forward_kernels(SavedGelu form, GeluKind kind) {
  static const FusedKernel* const erf[] = {&erf_gelu_derivative_2x1, &erf_gelu_derivative_1x2};
  if (kind == GeluKind::erf)
    return form == SavedGelu::derivative ? FusedKernels{erf, 2} : FusedKernels{};
  static const FusedKernel* const input[] = {&gelu_2x1, &gelu_1x2};
  static const FusedKernel* const derivative[] = {&gelu_derivative_2x1, &gelu_derivative_1x2};
  return {form == SavedGelu::derivative ? derivative : input, 2};
}
FusedKernels gelu_backward_kernels(SavedGelu form, GeluKind kind) {
  if (kind == GeluKind::erf && form == SavedGelu::input) return {};
  static const FusedKernel* const input[] = {&gelu_gradient_64x32, &gelu_gradient_64x64};
  static const FusedKernel* const derivative[] = {&times_derivative_64x32, &times_derivative_64x64};
  return {form == SavedGelu::derivative ? derivative : input, 2};
}
CrossEntropyKernels cross_entropy_kernels() {
  static const CrossEntropyKernel* const all[] = {
      &cross_entropy_128x128_2x1, &cross_entropy_128x128_1x2, &cross_entropy_64x256_2x1};
  return {all, 3};
}
#else
CrossEntropyKernels cross_entropy_kernels() {
  return {};
}
FusedKernels bias_kernels() {
  return {};
}
FusedKernels bias_residual_kernels() {
  return {};
}
FusedKernels gelu_forward_kernels(SavedGelu, GeluKind) {
  return {};
}
FusedKernels gelu_backward_kernels(SavedGelu, GeluKind) {
  return {};
}
#endif

}  // namespace tally::train::cuda
