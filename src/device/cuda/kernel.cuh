// What all kernel files share: number types, 16-byte vectors, reductions with a fixed order of
// additions.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "src/device/cuda/check.h"
#include "src/device/cuda/cuda_stream.h"
#include "src/device/errors.h"
#include "src/device/tensor.h"

namespace tally::train::cuda {

// Sums are taken in float, and in double for double.
template <typename T>
struct AccumulatorOf {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <typename T>
using Acc = typename AccumulatorOf<T>::type;

__device__ inline float widen(float x) {
  return x;
}
__device__ inline double widen(double x) {
  return x;
}
__device__ inline float widen(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ inline float widen(__half x) {
  return __half2float(x);
}

template <typename T>
__device__ inline T narrow(Acc<T> x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline __half narrow<__half>(float x) {
  return __float2half_rn(x);
}

// N values moved by one instruction where N * sizeof(T) is 16.
template <typename T, int N>
struct alignas(N * sizeof(T)) Vector {
  T v[N];
};
template <typename T>
constexpr int vector_size = 16 / static_cast<int>(sizeof(T));

template <typename T, int N>
__device__ inline Vector<T, N> load(const T* p) {
  return *reinterpret_cast<const Vector<T, N>*>(p);
}
template <typename T, int N>
__device__ inline void store(T* p, const Vector<T, N>& x) {
  *reinterpret_cast<Vector<T, N>*>(p) = x;
}

// All values of a vector. bf16 values are converted in pairs: one instruction a value, where the
// second of a pair takes two if converted by itself.
template <typename T, int N>
__device__ inline void widen(const Vector<T, N>& v, Acc<T> (&x)[N]) {
  if constexpr (std::is_same_v<T, __nv_bfloat16> && N % 2 == 0) {
    const auto* pairs = reinterpret_cast<const uint32_t*>(&v);
#pragma unroll
    for (int k = 0; k < N; k += 2) {
      x[k] = __uint_as_float(pairs[k / 2] << 16);
      x[k + 1] = __uint_as_float(pairs[k / 2] & 0xffff0000U);
    }
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) x[k] = widen(v.v[k]);
  }
}

// 2^x, with an error of two units in the last place.
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
constexpr float log2_e = 1.4426950408889634F;

// An address in shared memory as PTX instructions take it.
__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

template <typename A>
__device__ inline A warp_sum(A x) {
  for (int d = 16; d > 0; d >>= 1) x += __shfl_xor_sync(0xffffffffU, x, d);
  return x;
}
template <typename A>
__device__ inline A warp_max(A x) {
  for (int d = 16; d > 0; d >>= 1) {
    const A other = __shfl_xor_sync(0xffffffffU, x, d);
    x = other > x ? other : x;
  }
  return x;
}

// Sums two values over a block of whole warps; every thread gets the result. `shared`: 64 values.
template <typename A>
__device__ inline void block_sum2(A& x, A& y, A* shared) {
  x = warp_sum(x);
  y = warp_sum(y);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = (blockDim.x + 31) / 32;
  if (warps == 1) return;
  __syncthreads();  // all threads have finished their last use of `shared`
  if (lane == 0) {
    shared[warp] = x;
    shared[32 + warp] = y;
  }
  __syncthreads();
  x = warp_sum(lane < warps ? shared[lane] : A(0));
  y = warp_sum(lane < warps ? shared[32 + lane] : A(0));
}
template <typename A>
__device__ inline A block_sum(A x, A* shared) {
  A none = 0;
  block_sum2(x, none, shared);
  return x;
}

// Calls f with a value of the C++ type of `t`.
template <typename F>
void by_type(DType t, const char* op, F&& f) {
  switch (t) {
    case DType::f64:
      return f(double{});
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(__nv_bfloat16{});
    case DType::f16:
      return f(__half{});
    default:
      throw DeviceError(std::string(op) + ": not a floating-point type: " + dtype_name(t));
  }
}

// Blocks of a kernel that are resident at the same time. A grid of this size has no partial last
// wave.
template <typename K>
int64_t resident_blocks(const CudaStream& s, K kernel, int threads, size_t shared_bytes = 0) {
  int blocks = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes));
  return static_cast<int64_t>(s.sms()) * (blocks > 0 ? blocks : 1);
}

inline int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Whether rows of `columns` values of T at these addresses can be moved 16 bytes at a time. Null
// addresses are ignored.
template <typename T, typename... P>
bool vectorizable(int64_t columns, const P*... addresses) {
  const uintptr_t bits = (reinterpret_cast<uintptr_t>(addresses) | ... | uintptr_t{0});
  return columns % vector_size<T> == 0 && bits % 16 == 0;
}

}  // namespace tally::train::cuda
