// The maximum of a row of logits and the sum of its exponentials relative to it, in one pass. NaNs
// are preserved, so that a run that has diverged shows it.
#pragma once

#include <cmath>

#include "src/device/cuda/kernel.cuh"

namespace tally::train::cuda {

__device__ inline float exponential(float x) {
  return __expf(x);
}
__device__ inline double exponential(double x) {
  return exp(x);
}
__device__ inline float precise_exponential(float x) {
  return expf(x);
}
__device__ inline double precise_exponential(double x) {
  return exp(x);
}
// 16-bit logits do not need the last bits of the exponential.
template <typename T>
__device__ inline Acc<T> fitting_exponential(Acc<T> x) {
  return sizeof(T) == 2 ? exponential(x) : precise_exponential(x);
}

template <typename A>
struct MaxSum {
  A max, sum;  // -infinity and 0 for no elements
};

template <typename T, typename A>
__device__ inline MaxSum<A> merge(MaxSum<A> x, MaxSum<A> y) {
  if (x.max < y.max) {
    const MaxSum<A> t = x;
    x = y;
    y = t;
  }
  // The maximum of no values is -infinity, whose difference to another is a NaN.
  if (y.sum != 0) x.sum += y.sum * fitting_exponential<T>(y.max - x.max);
  return x;
}

// A thread's part of a row: vectors of N from `first` on, `step` apart, up to `end`.
template <typename T, int N>
__device__ inline MaxSum<Acc<T>> max_sum_of(const T* row, int64_t first, int64_t step,
                                            int64_t end) {
  using A = Acc<T>;
  MaxSum<A> mine{A(-INFINITY), A(0)};
  for (int64_t i = first; i < end; i += step) {
    const Vector<T, N> v = load<T, N>(row + i);
    A max = mine.max, value[N];
    bool nothing = true;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      value[k] = i + k < end ? widen(v.v[k]) : A(-INFINITY);
      max = value[k] > max ? value[k] : max;
      nothing &= value[k] == A(-INFINITY);
    }
    if (nothing) continue;
    // One fused multiply-add, but not with 0 and the difference of two infinities.
    A sum = fitting_exponential<T>(value[0] - max);
    if (mine.sum != 0) sum += mine.sum * fitting_exponential<T>(mine.max - max);
#pragma unroll
    for (int k = 1; k < N; ++k) sum += fitting_exponential<T>(value[k] - max);
    mine = {max, sum};
  }
  return mine;
}

// The same over a block of whole warps; every thread gets the result. `shared`: 32 values.
template <typename T, typename A>
__device__ inline MaxSum<A> block_max_sum(MaxSum<A> mine, MaxSum<A>* shared) {
  const auto in_warp = [&] {
    for (int d = 16; d > 0; d >>= 1) {
      const MaxSum<A> other{__shfl_xor_sync(0xffffffffU, mine.max, d),
                            __shfl_xor_sync(0xffffffffU, mine.sum, d)};
      mine = merge<T>(mine, other);
    }
  };
  in_warp();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  __syncthreads();  // the last use of `shared` is over
  if (lane == 0) shared[warp] = mine;
  __syncthreads();
  mine = lane < warps ? shared[lane] : MaxSum<A>{A(-INFINITY), A(0)};
  in_warp();
  return mine;
}

}  // namespace tally::train::cuda
