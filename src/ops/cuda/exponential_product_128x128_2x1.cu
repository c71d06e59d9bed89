#include "src/ops/cuda/exponential_product_kernel.cuh"

namespace tally::train::cuda {
extern const ExponentialKernel exponential_128x128_2x1;
const ExponentialKernel exponential_128x128_2x1 =
    fused::Exponential<cute::Shape<cute::_128, cute::_128, cute::_64>,
                       cute::Shape<cute::_2, cute::_1, cute::_1>>::entry("128x128, cluster 2x1");
}  // namespace tally::train::cuda
