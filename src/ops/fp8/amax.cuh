// The largest magnitude of what a kernel's blocks see, as fp8_amax finds it (fp8.h).
#pragma once

#include "src/device/cuda/kernel.cuh"

namespace tally::train::cuda {

// Magnitudes are compared by their bits, which have the order of the numbers, and a NaN is above
// all of them.
__device__ inline unsigned magnitude(float x) {
  return __float_as_uint(x) & 0x7fffffffU;
}

template <typename T, int N>
__device__ inline unsigned largest_of(const Vector<T, N>& x) {
  unsigned largest = 0;
#pragma unroll
  for (int k = 0; k < N; ++k) largest = max(largest, magnitude(static_cast<float>(widen(x.v[k]))));
  return largest;
}

// Raises *amax, which starts at 0, to the largest magnitude that the threads of a block found. All
// of them call it, in a block of whole warps along x.
template <int threads>
__device__ inline void raise_amax(unsigned largest, unsigned* amax) {
  __shared__ unsigned shared[threads / lanes];
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  largest = __reduce_max_sync(all_lanes, largest);
  if (thread % lanes == 0) shared[thread / lanes] = largest;
  __syncthreads();
  if (thread >= threads / lanes) return;
  largest = __reduce_max_sync((1U << (threads / lanes)) - 1, shared[thread]);
  // Most blocks find less than what is there: reading is cheaper than an atomic operation.
  if (thread == 0 && largest > __ldcg(amax)) atomicMax(amax, largest);
}

}  // namespace tally::train::cuda
