#include "src/ops/cuda/exponential_product_kernel.cuh"

namespace tally::train::cuda {
extern const ExponentialKernel exponential_128x128_1x2;
const ExponentialKernel exponential_128x128_1x2 =
    fused::Exponential<cute::Shape<cute::_128, cute::_128, cute::_64>,
                       cute::Shape<cute::_1, cute::_2, cute::_1>>::entry("128x128, cluster 1x2");
}  // namespace tally::train::cuda
