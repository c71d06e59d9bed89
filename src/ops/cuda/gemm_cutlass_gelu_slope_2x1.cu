#include "src/ops/cuda/gemm_cutlass_kernel.cuh"

namespace tally::train::cuda {
extern const FusedKernel gelu_slope_2x1;
const FusedKernel gelu_slope_2x1 =
    fused::Kernel<fused::Work::gelu_slope, false, cute::Shape<cute::_128, cute::_128, cute::_64>,
                  cute::Shape<cute::_2, cute::_1, cute::_1>>::entry("128x128, cluster 2x1");
}  // namespace tally::train::cuda
