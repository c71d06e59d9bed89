// What the blocks of threads of both passes share: their sizes, their start, and writing results.
#pragma once

#include "src/device/cuda/kernel.cuh"
#include "src/device/cuda/tma.cuh"
#include "src/device/cuda/wgmma.cuh"
#include "src/ops/attention/hopper_kernels.h"

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

// Writes a warp's 16 rows of sums in 16 bits to a swizzled tile, at row `r` for this `lane`. `low`
// scales a thread's first row, `high` the one 8 further down.
template <typename T>
__device__ __forceinline__ void stage_rows(uint32_t staged, int r, int lane,
                                           const float (&sums)[32], float low, float high) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {  // 16 columns at a time
    const float* x = sums + 8 * k;
    const uint32_t pairs[] = {
        packed<T>(x[0] * low, x[1] * low), packed<T>(x[2] * high, x[3] * high),
        packed<T>(x[4] * low, x[5] * low), packed<T>(x[6] * high, x[7] * high)};
    store_matrices(staged + r * 128 + (((2 * k + lane / 16) ^ (r % 8)) << 4), pairs);
  }
}

}  // namespace tally::train::cuda::hopper
