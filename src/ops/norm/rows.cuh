// LayerNorm's kernels walk through rows with a warp a row, or WIDE warps a row where one would need
// too many registers. No barrier joins other warps, and each warp copies its next rows to shared
// memory while it works on one.
#pragma once

#include <cuda_pipeline.h>

#include <type_traits>

#include "src/device/cuda/kernel.cuh"

namespace tally::train::cuda {

// Rows of 32 PER vectors take one warp, rows of up to 32 PER WIDE more; INPUTS tensors are read
// side by side, AHEAD rows before they are used. Blocks of 128 threads.
template <typename T, int PER, int WIDE, int INPUTS, int AHEAD>
struct NormRows {
  static constexpr int N = vector_size<T>, warps = 4, threads = 32 * warps, groups = warps / WIDE;
  static constexpr int most_columns = 32 * PER * WIDE * N, slots = AHEAD + 1;
  using Row = Vector<T, N>[INPUTS][PER][32];
  static constexpr size_t shared_bytes = sizeof(Row) * slots * warps;

  const void* from[INPUTS];
  int64_t rows;
  int columns;

  // This lane's first column; its vectors follow 32 WIDE vectors apart.
  __device__ static int first_column() { return static_cast<int>(threadIdx.x) % (32 * WIDE) * N; }
  static constexpr int stride = 32 * WIDE * N;
  // Whether the row has this lane's vector p. One warp's rows have all.
  __device__ bool has(int p) const { return WIDE == 1 || first_column() + p * stride < columns; }
  // The offset of this lane's vector p of a row in a tensor.
  __device__ int64_t offset(int64_t row, int p) const {
    return row * columns + first_column() + p * stride;
  }

  // This group's first row, and how far it is to its next.
  __device__ static int64_t first_row() {
    return int64_t{blockIdx.x} * groups + threadIdx.x / (32 * WIDE);
  }
  __device__ static int64_t step() { return int64_t{gridDim.x} * groups; }

  // This lane's share of a vector of parameters, as it is or widened; 0 where the row has none.
  template <typename P>
  __device__ void parameters(const void* data, Vector<P, N> (&to)[PER]) const {
#pragma unroll
    for (int p = 0; p < PER; ++p) {
      Vector<T, N> v{};
      if (has(p)) v = load<T, N>(static_cast<const T*>(data) + first_column() + p * stride);
      if constexpr (std::is_same_v<P, T>) {
        to[p] = v;
      } else {
        widen(v, to[p].v);
      }
    }
  }

  __device__ static Row* slots_of_warp() {
    extern __shared__ float4 shared_memory[];
    return reinterpret_cast<Row*>(shared_memory) + slots * (threadIdx.x / 32);
  }

  // Starts to copy a row; past the last one, nothing. Called once a turn, so that waiting counts
  // right.
  __device__ void fetch(Row& to, int64_t row) const {
    if (row < rows) {
      const auto lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
      for (int input = 0; input < INPUTS; ++input) {
        const T* source = static_cast<const T*>(from[input]);
#pragma unroll
        for (int p = 0; p < PER; ++p) {
          if (has(p)) __pipeline_memcpy_async(&to[input][p][lane], source + offset(row, p), 16);
        }
      }
    }
    __pipeline_commit();
  }
  // Waits until all but the last AHEAD rows have arrived. A lane reads only what it copied.
  __device__ static void wait() {
    __pipeline_wait_prior(AHEAD);
  }

  // Sums over the row's warps, the same in all of its lanes. Consecutive calls alternate between
  // turn 0 and 1, so that one barrier is enough.
  template <int count>
  __device__ static void row_sums(float (&x)[count], int turn) {
#pragma unroll
    for (int v = 0; v < count; ++v) x[v] = warp_sum(x[v]);
    if constexpr (WIDE > 1) {
      __shared__ float meeting[2][warps][count];
      const auto warp = static_cast<int>(threadIdx.x / 32);
      if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int v = 0; v < count; ++v) meeting[turn][warp][v] = x[v];
      }
      const int group = warp / WIDE;
      asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(32 * WIDE) : "memory");
#pragma unroll
      for (int v = 0; v < count; ++v) {
        x[v] = 0;
#pragma unroll
        for (int w = 0; w < WIDE; ++w) x[v] += meeting[turn][group * WIDE + w][v];
      }
    }
  }
};

// Rows' shapes as types: PER and WIDE of NormRows.
template <int PER, int WIDE>
struct RowShape {
  static constexpr int per = PER, wide = WIDE;
};

// Calls f with the RowShape for rows of so many vectors, and returns whether there is one. For the
// usual widths each lane has a few whole vectors. With more of them, registers would leave too few
// warps, so several warps share a row: for widths around 2,048 and 4,096 that leave few lanes idle.
template <typename T, int N, typename F>
bool with_row_shape(int64_t vectors, F&& f) {
  if constexpr (N == 8) {
    if (vectors == 2 * 32) return f(RowShape<2, 1>{}), true;
    if (vectors == 3 * 32) return f(RowShape<3, 1>{}), true;
    if (vectors == 4 * 32) return f(RowShape<4, 1>{}), true;
    if (vectors == 5 * 32) return f(RowShape<5, 1>{}), true;
    if (vectors > 192 && vectors <= 256) return f(RowShape<4, 2>{}), true;
    if (vectors > 448 && vectors <= 640) return f(RowShape<5, 4>{}), true;
  }
  if constexpr (N == 4 && sizeof(T) == 4) {
    if (vectors == 6 * 32) return f(RowShape<6, 1>{}), true;
    if (vectors == 8 * 32) return f(RowShape<8, 1>{}), true;
  }
  return false;
}

}  // namespace tally::train::cuda
