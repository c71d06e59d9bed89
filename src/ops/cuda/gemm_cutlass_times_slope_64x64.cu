#include "src/ops/cuda/gemm_cutlass_kernel.cuh"

namespace tally::train::cuda {
extern const FusedKernel times_slope_64x64;
const FusedKernel times_slope_64x64 =
    fused::Kernel<fused::Work::times_slope, false, cute::Shape<cute::_128, cute::_128, cute::_64>,
                  cute::Shape<cute::_2, cute::_1, cute::_1>,
                  cute::Shape<cute::_64, cute::_64>>::entry("128x128, epilogue in 64x64");
}  // namespace tally::train::cuda
