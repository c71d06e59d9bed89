// The kernels of fused.h for forward passes. Autotuning chooses among their clusters.
#include "src/ops/gemm/fused_tiles.cuh"

namespace tally::train::cuda {

using fused::Cluster1x2;
using fused::Cluster2x1;
using fused::kernel_128x128;
using fused::Work;

constexpr const char* k2x1 = "128x128, cluster 2x1";
constexpr const char* k1x2 = "128x128, cluster 1x2";

extern const FusedKernel bias_2x1, bias_1x2;
const FusedKernel bias_2x1 = kernel_128x128<Work::bias, fused::bf16, Cluster2x1>(k2x1);
const FusedKernel bias_1x2 = kernel_128x128<Work::bias, fused::bf16, Cluster1x2>(k1x2);

extern const FusedKernel bias_residual_2x1, bias_residual_1x2;
const FusedKernel bias_residual_2x1 =
    kernel_128x128<Work::bias_residual, fused::bf16, Cluster2x1>(k2x1);
const FusedKernel bias_residual_1x2 =
    kernel_128x128<Work::bias_residual, fused::bf16, Cluster1x2>(k1x2);

extern const FusedKernel gelu_2x1, gelu_1x2;
const FusedKernel gelu_2x1 = kernel_128x128<Work::gelu, fused::bf16, Cluster2x1>(k2x1);
const FusedKernel gelu_1x2 = kernel_128x128<Work::gelu, fused::bf16, Cluster1x2>(k1x2);

extern const FusedKernel gelu_derivative_2x1, gelu_derivative_1x2;
const FusedKernel gelu_derivative_2x1 =
    kernel_128x128<Work::gelu_derivative, fused::bf16, Cluster2x1>(k2x1);
const FusedKernel gelu_derivative_1x2 =
    kernel_128x128<Work::gelu_derivative, fused::bf16, Cluster1x2>(k1x2);

extern const FusedKernel erf_gelu_derivative_2x1, erf_gelu_derivative_1x2;
const FusedKernel erf_gelu_derivative_2x1 =
    kernel_128x128<Work::erf_gelu_derivative, fused::bf16, Cluster2x1>(k2x1);
const FusedKernel erf_gelu_derivative_1x2 =
    kernel_128x128<Work::erf_gelu_derivative, fused::bf16, Cluster1x2>(k1x2);

// In f16 what encoders' GELU takes: models that train in f16 are mostly of them.
extern const FusedKernel erf_gelu_derivative_f16_2x1, erf_gelu_derivative_f16_1x2;
const FusedKernel erf_gelu_derivative_f16_2x1 =
    kernel_128x128<Work::erf_gelu_derivative, fused::f16, Cluster2x1>("f16, 128x128, cluster 2x1");
const FusedKernel erf_gelu_derivative_f16_1x2 =
    kernel_128x128<Work::erf_gelu_derivative, fused::f16, Cluster1x2>("f16, 128x128, cluster 1x2");

}  // namespace tally::train::cuda
