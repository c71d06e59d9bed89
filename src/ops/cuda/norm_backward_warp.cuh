// LayerNorm's backward pass with a warp a row, or WIDE warps a row where one would need too many
// registers (the sums are norm_backward.cu's): no barrier holds other warps together, and each has
// the next row on its way into shared memory while it works on one. For rows of 32 PER vectors with
// one warp, of up to 32 PER WIDE with more.
#pragma once

#include <cuda_pipeline.h>

#include "src/ops/cuda/common.cuh"
#include "src/ops/cuda/dropout.cuh"

namespace tally::train::cuda {

struct NormBackwardArguments {
  const void *dy, *x, *gamma, *mean, *rstd, *residual_grad;
  void *dx, *ddelta, *gamma_parts, *beta_parts, *bias_parts;
  int64_t rows, columns;
};

template <typename T, int PER, int WIDE, bool with_residual, bool with_bias>
struct NormBackwardWarp {
  static constexpr int N = vector_size<T>, warps = 4, threads = 32 * warps, groups = warps / WIDE;
  static constexpr int most_columns = 32 * PER * WIDE * N, inputs = with_residual ? 3 : 2;
  using Row = Vector<T, N>[inputs][PER][32];
  // Two rows a warp; at the end the sums of the block's warps.
  static constexpr size_t shared_bytes = sizeof(Row) * 2 * warps;
  static_assert(N % 4 == 0 && shared_bytes >= sizeof(float) * groups * most_columns);

  // This lane's first column; its vectors follow 32 WIDE vectors apart.
  __device__ static int first_column() { return static_cast<int>(threadIdx.x) % (32 * WIDE) * N; }
  static constexpr int stride = 32 * WIDE * N;
  // Whether the row has this lane's vector p.
  __device__ static bool has(int columns, int p) {
    return WIDE == 1 || first_column() + p * stride < columns;
  }
  __device__ static int columns_of(const NormBackwardArguments& a) {
    return WIDE == 1 ? most_columns : static_cast<int>(a.columns);
  }

  // The sums of a row's warps, the same in all of its lanes. Every row takes the other half of
  // `meeting`, so that one barrier is enough.
  __device__ static float2 row_sums(float x, float y, int turn) {
    x = warp_sum(x);
    y = warp_sum(y);
    if constexpr (WIDE == 1) return {x, y};
    __shared__ float2 meeting[2][warps];
    const auto warp = static_cast<int>(threadIdx.x / 32);
    if (threadIdx.x % 32 == 0) meeting[turn][warp] = {x, y};
    const int group = warp / WIDE;
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(32 * WIDE) : "memory");
    float2 sum{0, 0};
#pragma unroll
    for (int w = 0; w < WIDE; ++w) {
      sum.x += meeting[turn][group * WIDE + w].x;
      sum.y += meeting[turn][group * WIDE + w].y;
    }
    return sum;
  }

  __device__ static void fetch(const NormBackwardArguments& a, Row& to, int64_t row) {
    const auto lane = static_cast<int>(threadIdx.x % 32);
    const int columns = columns_of(a);
    const void* const from[3] = {a.x, a.dy, a.residual_grad};
#pragma unroll
    for (int input = 0; input < inputs; ++input) {
      const T* place = static_cast<const T*>(from[input]) + row * columns + first_column();
#pragma unroll
      for (int p = 0; p < PER; ++p) {
        if (has(columns, p)) __pipeline_memcpy_async(&to[input][p][lane], place + p * stride, 16);
      }
    }
  }

  // Adds up the groups' sums in shared memory, in their order.
  __device__ static void write_sums(const float (&sum)[PER][N], int columns, void* parts,
                                    float* shared) {
    const auto group = static_cast<int>(threadIdx.x / (32 * WIDE));
    __syncthreads();
#pragma unroll
    for (int p = 0; p < PER; ++p) {
#pragma unroll
      for (int k = 0; k < N; k += 4) {
        *reinterpret_cast<float4*>(shared + group * most_columns + first_column() + p * stride +
                                   k) = {sum[p][k], sum[p][k + 1], sum[p][k + 2], sum[p][k + 3]};
      }
    }
    __syncthreads();
    for (auto c = static_cast<int>(threadIdx.x); c < columns; c += threads) {
      float total = 0;
#pragma unroll
      for (int g = 0; g < groups; ++g) total += shared[g * most_columns + c];
      static_cast<float*>(parts)[int64_t{blockIdx.x} * columns + c] = total;
    }
  }

  __device__ static void run(const NormBackwardArguments& a, Dropout dropout) {
    extern __shared__ float4 shared_memory[];
    const auto warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    Row* const rows = reinterpret_cast<Row*>(shared_memory) + 2 * warp;
    const int columns = columns_of(a);
    dropout.resolve();
    Vector<T, N> gamma[PER] = {};
    float gamma_sum[PER][N] = {}, beta_sum[PER][N] = {}, bias_sum[PER][N] = {};
#pragma unroll
    for (int p = 0; p < PER; ++p) {
      if (has(columns, p))
        gamma[p] = load<T, N>(static_cast<const T*>(a.gamma) + first_column() + p * stride);
    }
    const auto *means = static_cast<const float*>(a.mean),
               *rstds = static_cast<const float*>(a.rstd);
    const int64_t step = int64_t{gridDim.x} * groups;
    int64_t row = int64_t{blockIdx.x} * groups + warp / WIDE;
    float next_mean = 0, next_rstd = 0;
    if (row < a.rows) {
      fetch(a, rows[0], row);
      next_mean = means[row];
      next_rstd = rstds[row];
    }
    __pipeline_commit();
    for (int turn = 0; row < a.rows; row += step, turn ^= 1) {
      const float mean = next_mean, rstd = next_rstd;
      if (row + step < a.rows) {
        fetch(a, rows[turn ^ 1], row + step);
        next_mean = means[row + step];
        next_rstd = rstds[row + step];
      }
      __pipeline_commit();
      __pipeline_wait_prior(1);  // a lane reads only what it fetched itself
      const Row& in = rows[turn];
      float sum_g = 0, sum_gx = 0;
#pragma unroll
      for (int p = 0; p < PER; ++p) {
        if (!has(columns, p)) continue;
        const Vector<T, N> x = in[0][p][lane], dy = in[1][p][lane];
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const float d = widen(dy.v[k]), xhat = (widen(x.v[k]) - mean) * rstd;
          const float g = d * widen(gamma[p].v[k]);
          gamma_sum[p][k] += d * xhat;
          beta_sum[p][k] += d;
          sum_g += g;
          sum_gx += g * xhat;
        }
      }
      const float2 sums = row_sums(sum_g, sum_gx, turn);
      const float share = 1.0F / static_cast<float>(columns);
      const float mean_g = sums.x * share, mean_gx = sums.y * share;
#pragma unroll
      for (int p = 0; p < PER; ++p) {
        if (!has(columns, p)) continue;
        const Vector<T, N> x = in[0][p][lane], dy = in[1][p][lane];
        Vector<T, N> residual, out;
        if constexpr (with_residual) residual = in[2][p][lane];
        float dx[N];
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const float xhat = (widen(x.v[k]) - mean) * rstd;
          dx[k] = rstd * (widen(dy.v[k]) * widen(gamma[p].v[k]) - mean_g - xhat * mean_gx);
          if constexpr (with_residual) dx[k] += widen(residual.v[k]);
          out.v[k] = narrow<T>(dx[k]);
        }
        const int64_t at = row * columns + first_column() + p * stride;
        store<T, N>(static_cast<T*>(a.dx) + at, out);
        if (a.ddelta) {
          if (dropout.active) dropout.apply<N>(static_cast<uint64_t>(at), dx);
#pragma unroll
          for (int k = 0; k < N; ++k) out.v[k] = narrow<T>(dx[k]);
          store<T, N>(static_cast<T*>(a.ddelta) + at, out);
        }
        if constexpr (with_bias) {
#pragma unroll
          for (int k = 0; k < N; ++k) bias_sum[p][k] += widen(out.v[k]);
        }
      }
    }
    __pipeline_wait_prior(0);
    auto* shared = reinterpret_cast<float*>(shared_memory);
    write_sums(gamma_sum, columns, a.gamma_parts, shared);
    write_sums(beta_sum, columns, a.beta_parts, shared);
    if constexpr (with_bias) write_sums(bias_sum, columns, a.bias_parts, shared);
  }
};

template <typename T, int PER, int WIDE, bool with_residual, bool with_bias>
__global__ void __launch_bounds__(128, 2)
    norm_backward_warp_kernel(NormBackwardArguments a, Dropout dropout) {
  NormBackwardWarp<T, PER, WIDE, with_residual, with_bias>::run(a, dropout);
}

}  // namespace tally::train::cuda
