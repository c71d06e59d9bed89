// Numbers as kernels hold them: the types of storage and of sums, and 16-byte vectors.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

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

// Whether rows of `columns` values of T at these addresses can be moved 16 bytes at a time. Null
// addresses are ignored.
template <typename T, typename... P>
bool vectorizable(int64_t columns, const P*... addresses) {
  const uintptr_t bits = (reinterpret_cast<uintptr_t>(addresses) | ... | uintptr_t{0});
  return columns % vector_size<T> == 0 && bits % 16 == 0;
}

}  // namespace tally::train::cuda
