#include "src/ops/cuda/exponential_product_kernel.cuh"

namespace tally::train::cuda {
extern const ExponentialKernel exponential_64x256_2x1;
const ExponentialKernel exponential_64x256_2x1 =
    fused::Exponential<cute::Shape<cute::_64, cute::_256, cute::_64>,
                       cute::Shape<cute::_2, cute::_1, cute::_1>>::entry("64x256, cluster 2x1");
}  // namespace tally::train::cuda
