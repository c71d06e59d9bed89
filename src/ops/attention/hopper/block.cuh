// The parts that the blocks of threads of both passes share: their sizes, their start, and writing
// results.
#pragma once

#include "src/device/cuda/kernel.cuh"
#include "src/device/cuda/tma.cuh"
#include "src/device/cuda/wgmma.cuh"
#include "src/device/philox.h"
#include "src/ops/attention/hopper/kernels.h"

namespace tally::train::cuda::hopper {

constexpr int tile_bytes = block_rows * head_dim * 2;
constexpr int half_rows = block_rows / 2, half_bytes = tile_bytes / 2;
constexpr size_t most_shared = 232448;  // bytes that a block may have on Hopper

// Two warpgroups compute, one copies. These are registers a thread. They come out of the registers
// that the block was launched with, and a block that asks for more waits for ever: 168 is what the
// compiler may use of 65,536 for 384 threads, in multiples of eight.
constexpr int warpgroup = 128;  // threads
constexpr int copying_registers = 24, multiplying_registers = 240;
static_assert(copying_registers + 2 * multiplying_registers == 3 * 168);

template <typename Object>
__device__ uint32_t at(const Object& object) {
  return shared_address(&object);
}

// Calls `begin` in one thread, to make the barriers; then `copy` in one thread, and `multiply` with
// their number in two warpgroups.
template <typename Begin, typename Copy, typename Multiply>
__device__ __forceinline__ void take_roles(Begin begin, Copy copy, Multiply multiply) {
  if (threadIdx.x == 0) {
    begin();
    fence_barrier_init();
    fence_async_proxy();
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x / warpgroup);
  if (group == 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(copying_registers));
    if (threadIdx.x == 2 * warpgroup) copy();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(multiplying_registers));
    multiply(group);
  }
}

// Writes a warp's 16 rows of 64 sums in 16 bits to a swizzled tile, at row `r` for this `lane`.
// `low` scales a thread's first row, `high` the one 8 further down.
template <typename T>
__device__ __forceinline__ void stage_rows(uint32_t staged, int r, int lane, const float* sums,
                                           float low, float high) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {  // 16 columns at a time
    const float* x = sums + 8 * k;
    const uint32_t pairs[] = {
        packed<T>(x[0] * low, x[1] * low), packed<T>(x[2] * high, x[3] * high),
        packed<T>(x[4] * low, x[5] * low), packed<T>(x[6] * high, x[7] * high)};
    store_matrices(staged + r * 128 + (((2 * k + lane / 16) ^ (r % 8)) << 4), pairs);
  }
}

// The maximum over the four threads that have a row's columns, and the sum.
__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffU, x, 1);
  return x + __shfl_xor_sync(0xffffffffU, x, 2);
}

// sums[64 keys of warpgroup `group`, 128 queries] = (K or V)(Q or dO)^T
template <typename T>
__device__ __forceinline__ void multiply_rows(float (&sums)[64], const uint8_t* keys,
                                              const uint8_t* queries, int group) {
  const uint64_t a = wgmma_tile(shared_address(keys) + group * half_bytes);
  const uint64_t b = wgmma_tile(shared_address(queries));
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) Wgmma<T>::scores(sums, a + 2 * k, b + 2 * k, k > 0);
  wgmma_commit();
}

// A bit for each of the elements 8 group .. 8 (group + count) - 1 of dropout's mask: whether it is
// kept.
template <int count>
__device__ __forceinline__ void kept_elements(uint64_t seed, uint64_t group, uint32_t threshold,
                                              uint32_t (&bits)[(count + 3) / 4]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const Philox4 random = dropout_draw(seed, group + i);
    uint32_t byte = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k)
      byte |= static_cast<uint32_t>(dropout_keeps_half(random.word[k / 2], k % 2, threshold)) << k;
    bits[i / 4] = (i % 4 == 0 ? 0 : bits[i / 4]) | byte << (i % 4 * 8);
  }
}

// A barrier for the threads of one warpgroup.
__device__ inline void meet(int barrier) {
  asm volatile("bar.sync %0, 128;" ::"r"(barrier) : "memory");
}

// Writes a warpgroup's 64 rows of sums in 16 bits to rows of `row` values from `to` on, but only
// the first `rows` of them. `low` and `high` as above. `staged`: half_bytes of shared memory.
template <typename T>
__device__ void write_rows(const float* sums, float low, float high, uint8_t* staged, T* to,
                           int64_t row, int barrier, int rows = half_rows) {
  const int thread = static_cast<int>(threadIdx.x % warpgroup), lane = thread % 32;
  stage_rows<T>(shared_address(staged), thread / 32 * 16 + lane % 16, lane, sums, low, high);
  meet(barrier);
#pragma unroll
  for (int i = thread; i < half_rows * 8; i += warpgroup) {
    const int at = i / 8, c = i % 8;
    if (at < rows)
      *reinterpret_cast<uint4*>(to + at * row + c * 8) =
          *reinterpret_cast<const uint4*>(staged + at * 128 + ((c ^ (at % 8)) << 4));
  }
  meet(barrier);
}

// Launches `kernel` with two warpgroups that compute, one that copies, and a Shared for the block.
template <typename Shared, typename Params>
cudaError_t launch_blocks(void (*kernel)(Params), const Params& p, int blocks,
                          cudaStream_t stream) {
  const cudaError_t sized =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  if (sized != cudaSuccess) return sized;
  kernel<<<blocks, 3 * warpgroup, sizeof(Shared), stream>>>(p);
  return cudaGetLastError();
}

}  // namespace tally::train::cuda::hopper
