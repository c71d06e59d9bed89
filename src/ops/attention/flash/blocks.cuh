// The part that the flash attention kernels (forward.cuh, backward.cuh) share: blocks of a
// tensor in shared memory that are copied asynchronously, the dropout mask, and writing tiles back.
#pragma once

#include "src/device/cuda/kernel.cuh"
#include "src/device/cuda/ptx.cuh"
#include "src/ops/attention/flash/kernels.h"
#include "src/ops/attention/flash/tiles.cuh"

namespace tally::train::cuda {

constexpr int flash_threads = 128;  // four warps

// Starts an asynchronous copy of 16 or 4 bytes to shared memory, zeros unless `valid`.
__device__ inline void copy16(uint32_t to, const float* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(valid ? 16 : 0));
}
__device__ inline void copy4(uint32_t to, const float* from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
               "r"(valid ? 4 : 0));
}
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;");
}
// Waits until at most `pending` of this thread's groups are unfinished.
template <int pending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// R x D values of a block in shared memory, rows D + pad apart. Each thread has one group of four
// columns.
template <class Math, int R, int D, int pad>
struct Block {
  static constexpr int leading = D + pad, size = R * leading;
  static constexpr int groups = D / 4, step = flash_threads / groups;  // rows of one pass

  // Starts to copy rows of `row_step` elements, zeros from `rows` and `columns` on.
  __device__ static void fetch(float* to, const float* from, int64_t row_step, int rows,
                               int columns) {
    const int t = static_cast<int>(threadIdx.x), r = t / groups, c = t % groups * 4;
    uint32_t target = shared_address(to + r * leading + c);
    from += r * row_step + c;
    if (columns % 4 == 0) {
      if (c >= columns) rows = 0;
#pragma unroll
      for (int i = 0; i < R; i += step) {
        copy16(target + i * leading * 4, from, r + i < rows);
        from += step * row_step;
      }
    } else {
#pragma unroll 1
      for (int i = 0; i < R; i += step) {
        for (int k = 0; k < 4; ++k)
          copy4(target + (i * leading + k) * 4, from + k, r + i < rows && c + k < columns);
        from += step * row_step;
      }
    }
  }
  // Converts what this thread copied to the form that the matmuls take, after wait_for_copies().
  // The other threads' values are visible after the next __syncthreads().
  __device__ static void arrived(float* at) {
    if (Math::keeps) return;
    const int t = static_cast<int>(threadIdx.x);
    at += t / groups * leading + t % groups * 4;
#pragma unroll
    for (int i = 0; i < R; i += step) {
      auto* x = reinterpret_cast<float4*>(at + i * leading);
      const float4 v = *x;
      *x = {Math::stored(v.x), Math::stored(v.y), Math::stored(v.z), Math::stored(v.w)};
    }
  }
};

// Two neighbouring values of a row in shared memory.
template <class Math>
__device__ inline void put(float* row, int col, int next_col, float x, float y) {
  if (Math::neighbours) {
    *reinterpret_cast<float2*>(row + col) = {x, y};
  } else {
    row[col] = x;
    row[next_col] = y;
  }
}

// The offsets of one head's rows in qkv and dqkv (which: 0 Q, 1 K, 2 V) and in out and dout.
struct Head {
  int64_t index, packed_step, step, packed_at, at;
  __device__ Head(const Flash& p) : index(p.first_head + blockIdx.x) {
    const int64_t b = index / p.heads, h = index % p.heads;
    step = int64_t{p.heads} * p.head_dim;
    packed_step = 3 * step;
    packed_at = b * p.tokens * packed_step + h * p.head_dim;
    at = b * p.tokens * step + h * p.head_dim;
  }
  __device__ int64_t packed(int which, int64_t row) const {
    return packed_at + which * step + row * packed_step;
  }
};

// Dropout's factors of elements i .. i + 7. Aligned: i is a multiple of 8, one draw serves all.
struct EightFactors {
  float4 half[2];
};
template <bool aligned>
__device__ inline EightFactors eight_factors(const Flash& p, uint64_t seed, uint64_t i) {
  uint32_t word[4] = {};
  if constexpr (aligned) {
    const Philox4 random = dropout_draw(seed, i >> 3);
#pragma unroll
    for (int k = 0; k < 4; ++k) word[k] = random.word[k];
  } else {
    // Extracts the bits of eight elements from two draws into the positions of an aligned draw.
    const Philox4 first = dropout_draw(seed, i >> 3), second = dropout_draw(seed, (i >> 3) + 1);
    const auto shift = static_cast<uint32_t>(i & 7);
    const auto word_of = [&](uint32_t k) {
      uint32_t w = first.word[0];
#pragma unroll
      for (uint32_t n = 1; n < 8; ++n) w = k == n ? (n < 4 ? first : second).word[n % 4] : w;
      return w;
    };
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t at = shift / 2 + k;
      word[k] = shift % 2 == 0 ? word_of(at) : word_of(at) >> 16 | word_of(at + 1) << 16;
    }
  }
  const auto factor = [&](uint32_t w, int part) {
    return dropout_keeps_half(w, part, p.threshold) ? p.keep_scale : 0.0F;
  };
  return {{{factor(word[0], 0), factor(word[0], 1), factor(word[1], 0), factor(word[1], 1)},
           {factor(word[2], 0), factor(word[2], 1), factor(word[3], 0), factor(word[3], 1)}}};
}

// Calls f(row, col, factors) for every four columns of a block of R x C elements of the mask that
// begins at (row0, col0). `threads` threads share the rows; this one is number t. This is a loop of
// its own, because random numbers drawn inside the unrolled matmuls would not fit the instruction
// cache.
template <int R, int C, int threads, bool aligned, class F>
__device__ inline void mask_rows(const Flash& p, uint64_t seed, int64_t head, int row0, int col0,
                                 int t, F&& f) {
  constexpr int groups = C / 8, step = threads / groups;
  const int r = t / groups, c = t % groups * 8;
  // Four neighbours begin with the second half, so that eight threads access all banks.
  const int first = t / 4 % 2;
  auto element = static_cast<uint64_t>((head * p.tokens + row0 + r) * p.tokens + col0 + c);
#pragma unroll 1
  for (int row = r; row < R; row += step) {
    const EightFactors factors = eight_factors<aligned>(p, seed, element);
    f(row, c + 4 * first, first ? factors.half[1] : factors.half[0]);
    f(row, c + 4 - 4 * first, first ? factors.half[0] : factors.half[1]);
    element += static_cast<uint64_t>(step) * static_cast<uint64_t>(p.tokens);
  }
}
template <int R, int C, int threads, class F>
__device__ inline void mask_block(const Flash& p, uint64_t seed, int64_t head, int row0, int col0,
                                  int t, F&& f) {
  if (p.tokens % 8 == 0) {
    mask_rows<R, C, threads, true>(p, seed, head, row0, col0, t, f);
  } else {
    mask_rows<R, C, threads, false>(p, seed, head, row0, col0, t, f);
  }
}

// Writes a tile's values, `factor(i)` times row i's, to rows of `step` elements; `to` is where its
// element (0, 0) goes.
template <class Tile, class Factor>
__device__ inline void write_tile(Tile& tile, float* to, int64_t step, int rows, int columns,
                                  Factor&& factor) {
#pragma unroll
  for (int i = 0; i < Tile::rows; ++i) {
    const int r = Tile::row(i);
    if (r >= rows) continue;
#pragma unroll
    for (int j = 0; j < Tile::cols; j += 2) {  // neighbours
      const int c = Tile::col(j);
      float* at = to + r * step + c;
      const float x = tile.value(i, j) * factor(i), y = tile.value(i, j + 1) * factor(i);
      if (columns % 2 == 0) {
        if (c < columns) *reinterpret_cast<float2*>(at) = {x, y};
      } else {
        if (c < columns) at[0] = x;
        if (c + 1 < columns) at[1] = y;
      }
    }
  }
}

}  // namespace tally::train::cuda
