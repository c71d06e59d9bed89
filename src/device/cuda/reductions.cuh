// Sums and maxima over the lanes of a warp and over a block, with a fixed order of additions.
#pragma once

#include <cuda_runtime.h>

namespace tally::train::cuda {

// Threads of a warp: 32 on NVIDIA's GPUs.
constexpr int lanes = 32;
constexpr unsigned all_lanes = 0xffffffffU;

template <typename A>
__device__ inline A warp_sum(A x) {
  for (int d = lanes / 2; d > 0; d >>= 1) x += __shfl_xor_sync(all_lanes, x, d);
  return x;
}
template <typename A>
__device__ inline A warp_max(A x) {
  for (int d = lanes / 2; d > 0; d >>= 1) {
    const A other = __shfl_xor_sync(all_lanes, x, d);
    x = other > x ? other : x;
  }
  return x;
}

// Sums two values over a block of whole warps; every thread gets the result. `shared`: 2 lanes
// values.
template <typename A>
__device__ inline void block_sum2(A& x, A& y, A* shared) {
  x = warp_sum(x);
  y = warp_sum(y);
  const int warp = threadIdx.x / lanes, lane = threadIdx.x % lanes,
            warps = (blockDim.x + lanes - 1) / lanes;
  if (warps == 1) return;
  __syncthreads();  // all threads have finished their last use of `shared`
  if (lane == 0) {
    shared[warp] = x;
    shared[lanes + warp] = y;
  }
  __syncthreads();
  x = warp_sum(lane < warps ? shared[lane] : A(0));
  y = warp_sum(lane < warps ? shared[lanes + lane] : A(0));
}
template <typename A>
__device__ inline A block_sum(A x, A* shared) {
  A none = 0;
  block_sum2(x, none, shared);
  return x;
}

}  // namespace tally::train::cuda
