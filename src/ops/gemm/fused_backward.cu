// The kernels of fused.h for GELU's gradient, from the saved input and from the saved derivative.
#include "src/ops/gemm/fused_tiles.cuh"

namespace tally::train::cuda {
namespace {

using fused::Cluster2x1;
using fused::kernel_128x128;

template <FusedWork work>
using In64x64 =
    fused::Kernel<work, fused::bf16, false, fused::Tile128x128, Cluster2x1, fused::Epilogue64x64>;

template <FusedWork work>
struct Bf16 {
  static constexpr FusedKernel list[2] = {
      kernel_128x128<work, fused::bf16, Cluster2x1>("128x128, epilogue in 64x32"),
      In64x64<work>::entry("128x128, epilogue in 64x64")};
  ListFusedKernels listed{work, DType::bf16, list};
};
const Bf16<FusedWork::gelu_gradient> gelu_gradient;
const Bf16<FusedWork::times_derivative> times_derivative;

const FusedKernel times_derivative_f16[] = {
    kernel_128x128<FusedWork::times_derivative, fused::f16, Cluster2x1>(
        "f16, 128x128, epilogue in 64x32")};
const ListFusedKernels times_derivative_f16_listed(FusedWork::times_derivative, DType::f16,
                                                   times_derivative_f16);

}  // namespace
}  // namespace tally::train::cuda
