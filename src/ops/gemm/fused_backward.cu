// The kernels of fused.h for GELU's gradient, from the saved input and from the saved derivative.
#include "src/ops/gemm/fused_tiles.cuh"

namespace tally::train::cuda {

using fused::Cluster2x1;
using fused::kernel_128x128;
using fused::Work;

template <Work work>
using In64x64 =
    fused::Kernel<work, fused::bf16, false, fused::Tile128x128, Cluster2x1, fused::Epilogue64x64>;

constexpr const char* k64x32 = "128x128, epilogue in 64x32";
constexpr const char* k64x64 = "128x128, epilogue in 64x64";

extern const FusedKernel gelu_gradient_64x32, gelu_gradient_64x64;
const FusedKernel gelu_gradient_64x32 =
    kernel_128x128<Work::gelu_gradient, fused::bf16, Cluster2x1>(k64x32);
const FusedKernel gelu_gradient_64x64 = In64x64<Work::gelu_gradient>::entry(k64x64);

extern const FusedKernel times_derivative_64x32, times_derivative_64x64;
const FusedKernel times_derivative_64x32 =
    kernel_128x128<Work::times_derivative, fused::bf16, Cluster2x1>(k64x32);
const FusedKernel times_derivative_64x64 = In64x64<Work::times_derivative>::entry(k64x64);

extern const FusedKernel times_derivative_f16;
const FusedKernel times_derivative_f16 =
    kernel_128x128<Work::times_derivative, fused::f16, Cluster2x1>(
        "f16, 128x128, epilogue in 64x32");

}  // namespace tally::train::cuda
