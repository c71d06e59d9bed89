// The kernels of fused.h for forward passes. Autotuning chooses among their clusters.
#include "src/ops/gemm/fused_tiles.cuh"

namespace tally::train::cuda {
namespace {

using fused::Cluster1x2;
using fused::Cluster2x1;
using fused::kernel_128x128;

template <FusedWork work>
struct Bf16 {
  static constexpr FusedKernel list[2] = {
      kernel_128x128<work, fused::bf16, Cluster2x1>("128x128, cluster 2x1"),
      kernel_128x128<work, fused::bf16, Cluster1x2>("128x128, cluster 1x2")};
  ListFusedKernels listed{work, DType::bf16, list};
};
const Bf16<FusedWork::bias> bias;
const Bf16<FusedWork::bias_residual> bias_residual;
const Bf16<FusedWork::gelu> gelu;
const Bf16<FusedWork::gelu_derivative> gelu_derivative;
const Bf16<FusedWork::erf_gelu_derivative> erf_gelu_derivative;

// The f16 kernels are those of encoders' GELU: models that train in f16 are mostly encoders.
constexpr auto erf = FusedWork::erf_gelu_derivative;
const FusedKernel erf_f16[] = {
    kernel_128x128<erf, fused::f16, Cluster2x1>("f16, 128x128, cluster 2x1"),
    kernel_128x128<erf, fused::f16, Cluster1x2>("f16, 128x128, cluster 1x2")};
const ListFusedKernels erf_f16_listed(erf, DType::f16, erf_f16);

}  // namespace
}  // namespace tally::train::cuda
