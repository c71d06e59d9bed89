// Single instructions that C++ has no name for. Instructions of Hopper are in tma.cuh and
// wgmma.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace tally::train::cuda {

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

}  // namespace tally::train::cuda
