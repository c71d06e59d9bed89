// Shared parts of the kernels that cast to FP8.
#pragma once

#include <cuda_fp8.h>

#include <string>

#include "src/device/cuda/kernel.cuh"
#include "src/ops/fp8/fp8.h"

namespace tally::train::cuda {

// Two numbers that lie within the format.
template <__nv_fp8_interpretation_t format>
__device__ inline unsigned pair_of(float a, float b) {
  return __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, format);
}
// Four of them; the first lies at the lowest address.
template <__nv_fp8_interpretation_t format>
__device__ inline unsigned four_of(float a, float b, float c, float d) {
  return pair_of<format>(a, b) | pair_of<format>(c, d) << 16;
}

template <__nv_fp8_interpretation_t format>
constexpr float largest_in = largest_of(format == __NV_E4M3 ? DType::e4m3 : DType::e5m2);

// Eight neighbours of a row, at a multiple of 16 bytes.
template <typename T>
__device__ inline void load_eight(const T* from, float (&x)[8]) {
#pragma unroll
  for (int k = 0; k < 8; k += vector_size<T>) {
    float some[vector_size<T>];
    widen(load<T, vector_size<T>>(from + k), some);
#pragma unroll
    for (int j = 0; j < vector_size<T>; ++j) x[k + j] = some[j];
  }
}

// Calls f with a value of the C++ type of what is cast.
template <typename F>
void by_cast_type(DType t, F&& f) {
  if (t == DType::bf16) return f(__nv_bfloat16{});
  if (t == DType::f16) return f(__half{});
  if (t == DType::f32) return f(float{});
  throw DeviceError(std::string("fp8_cast: not a type of 16 or 32 bits: ") + dtype_name(t));
}

// fp8_cast() with a scale for each row, vector or block.
void cast_with_own_scales(CudaStream& s, const In& x, const Fp8Copies& out);

}  // namespace tally::train::cuda
