// The tiles and clusters of the kernels from CUTLASS's parts, and how a kernel is made of them.
//
// Nearly all of the minute that a file of such kernels takes to compile are CUTLASS's headers: ten
// kernels in one file take little more than one.
#pragma once

#include "src/ops/gemm/fused_kernel.cuh"

namespace tally::train::cuda::fused {

using Tile128x128 = cute::Shape<cute::_128, cute::_128, cute::_64>;
using Tile64x256 = cute::Shape<cute::_64, cute::_256, cute::_64>;
using Cluster2x1 = cute::Shape<cute::_2, cute::_1, cute::_1>;
using Cluster1x2 = cute::Shape<cute::_1, cute::_2, cute::_1>;
using Epilogue64x64 = cute::Shape<cute::_64, cute::_64>;

template <Work work, typename Element, typename Cluster>
constexpr FusedKernel kernel_128x128(const char* name) {
  return Kernel<work, Element, false, Tile128x128, Cluster>::entry(name);
}

}  // namespace tally::train::cuda::fused
