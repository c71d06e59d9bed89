// The kernels of fused_gemm.h. Autotuning chooses among their tiles and clusters.
#include "src/ops/gemm/fused_tiles.cuh"
#include "src/ops/loss/fused_gemm_kernel.cuh"

namespace tally::train::cuda {

using fused::CrossEntropy;
using fused::Tile128x128;

namespace {

const CrossEntropyKernel kernels[] = {
    CrossEntropy<Tile128x128, fused::Cluster2x1>::entry("128x128, cluster 2x1"),
    CrossEntropy<Tile128x128, fused::Cluster1x2>::entry("128x128, cluster 1x2"),
    CrossEntropy<fused::Tile64x256, fused::Cluster2x1>::entry("64x256, cluster 2x1")};

const bool listed = [] {
  cross_entropy_kernels() = kernels;
  return true;
}();

}  // namespace
}  // namespace tally::train::cuda
