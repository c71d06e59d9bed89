// The list of the CUTLASS kernels, which fused_forward.cu, fused_backward.cu and loss/fused_gemm.cu make.
#include "src/ops/gemm/fused.h"

#include "src/ops/loss/fused_gemm.h"

namespace tally::train::cuda {

#ifdef TALLY_CUTLASS
extern const FusedKernel bias_2x1, bias_1x2;
extern const FusedKernel bias_residual_2x1, bias_residual_1x2;
extern const FusedKernel gelu_2x1, gelu_1x2;
extern const FusedKernel gelu_derivative_2x1, gelu_derivative_1x2;
extern const FusedKernel erf_gelu_derivative_2x1, erf_gelu_derivative_1x2;
extern const FusedKernel erf_gelu_derivative_f16_2x1, erf_gelu_derivative_f16_1x2;
extern const FusedKernel times_derivative_f16;
extern const FusedKernel gelu_gradient_64x32, gelu_gradient_64x64;
extern const FusedKernel times_derivative_64x32, times_derivative_64x64;
extern const CrossEntropyKernel cross_entropy_128x128_2x1, cross_entropy_128x128_1x2;
extern const CrossEntropyKernel cross_entropy_64x256_2x1;

FusedKernels bias_kernels(DType type) {
  static const FusedKernel* const all[] = {&bias_2x1, &bias_1x2};
  return type == DType::bf16 ? FusedKernels{all, 2} : FusedKernels{};
}
FusedKernels bias_residual_kernels(DType type) {
  static const FusedKernel* const all[] = {&bias_residual_2x1, &bias_residual_1x2};
  return type == DType::bf16 ? FusedKernels{all, 2} : FusedKernels{};
}
FusedKernels gelu_forward_kernels(DType type, SavedGelu form, GeluKind kind) {
  static const FusedKernel* const erf[] = {&erf_gelu_derivative_2x1, &erf_gelu_derivative_1x2};
  static const FusedKernel* const erf_f16[] = {&erf_gelu_derivative_f16_2x1,
                                               &erf_gelu_derivative_f16_1x2};
  static const FusedKernel* const input[] = {&gelu_2x1, &gelu_1x2};
  static const FusedKernel* const derivative[] = {&gelu_derivative_2x1, &gelu_derivative_1x2};
  const bool saves_derivative = form == SavedGelu::derivative;
  if (kind == GeluKind::erf && !saves_derivative) return {};
  if (type == DType::f16) return kind == GeluKind::erf ? FusedKernels{erf_f16, 2} : FusedKernels{};
  if (type != DType::bf16) return {};
  if (kind == GeluKind::erf) return {erf, 2};
  return {saves_derivative ? derivative : input, 2};
}
FusedKernels gelu_backward_kernels(DType type, SavedGelu form, GeluKind kind) {
  static const FusedKernel* const input[] = {&gelu_gradient_64x32, &gelu_gradient_64x64};
  static const FusedKernel* const derivative[] = {&times_derivative_64x32, &times_derivative_64x64};
  static const FusedKernel* const derivative_f16[] = {&times_derivative_f16};
  const bool saved_derivative = form == SavedGelu::derivative;
  if (kind == GeluKind::erf && !saved_derivative) return {};
  if (type == DType::f16)
    return kind == GeluKind::erf ? FusedKernels{derivative_f16, 1} : FusedKernels{};
  if (type != DType::bf16) return {};
  return {saved_derivative ? derivative : input, 2};
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
FusedKernels bias_kernels(DType) {
  return {};
}
FusedKernels bias_residual_kernels(DType) {
  return {};
}
FusedKernels gelu_forward_kernels(DType, SavedGelu, GeluKind) {
  return {};
}
FusedKernels gelu_backward_kernels(DType, SavedGelu, GeluKind) {
  return {};
}
#endif

}  // namespace tally::train::cuda
