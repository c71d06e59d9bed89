// LayerNorm's backward pass with a warp a row (the sums are norm_backward.cu's): no barrier holds
// warps together, and each has the next row on its way into shared memory while it works on one.
// For rows of 32 PER vectors.
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

template <typename T, int PER, bool with_residual, bool with_bias>
struct NormBackwardWarp {
  static constexpr int N = vector_size<T>, warps = 4, threads = 32 * warps;
  static constexpr int columns = 32 * PER * N, inputs = with_residual ? 3 : 2;
  using Row = Vector<T, N>[inputs][PER][32];
  // Two rows a warp; at the end the sums of the block's warps.
  static constexpr size_t shared_bytes = sizeof(Row) * 2 * warps;
  static_assert(N % 4 == 0 && shared_bytes >= sizeof(float) * warps * columns);

  __device__ static void fetch(const NormBackwardArguments& a, Row& to, int64_t row) {
    const auto lane = static_cast<int>(threadIdx.x % 32);
    const void* const from[3] = {a.x, a.dy, a.residual_grad};
#pragma unroll
    for (int input = 0; input < inputs; ++input) {
      const T* place = static_cast<const T*>(from[input]) + row * columns + lane * N;
#pragma unroll
      for (int p = 0; p < PER; ++p)
        __pipeline_memcpy_async(&to[input][p][lane], place + p * 32 * N, 16);
    }
  }

  // Adds up the warps' sums in shared memory, in their order.
  __device__ static void write_sums(const float (&sum)[PER][N], void* parts, float* shared) {
    const auto warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    __syncthreads();
#pragma unroll
    for (int p = 0; p < PER; ++p) {
#pragma unroll
      for (int k = 0; k < N; k += 4) {
        *reinterpret_cast<float4*>(shared + warp * columns + (p * 32 + lane) * N + k) = {
            sum[p][k], sum[p][k + 1], sum[p][k + 2], sum[p][k + 3]};
      }
    }
    __syncthreads();
    for (auto c = static_cast<int>(threadIdx.x); c < columns; c += threads) {
      float total = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) total += shared[w * columns + c];
      static_cast<float*>(parts)[int64_t{blockIdx.x} * columns + c] = total;
    }
  }

  __device__ static void run(const NormBackwardArguments& a, Dropout dropout) {
    extern __shared__ float4 shared_memory[];
    const auto warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    Row* const rows = reinterpret_cast<Row*>(shared_memory) + 2 * warp;
    dropout.resolve();
    Vector<T, N> gamma[PER];
    float gamma_sum[PER][N] = {}, beta_sum[PER][N] = {}, bias_sum[PER][N] = {};
#pragma unroll
    for (int p = 0; p < PER; ++p)
      gamma[p] = load<T, N>(static_cast<const T*>(a.gamma) + (p * 32 + lane) * N);
    const auto *means = static_cast<const float*>(a.mean),
               *rstds = static_cast<const float*>(a.rstd);
    const int64_t step = int64_t{gridDim.x} * warps;
    int64_t row = int64_t{blockIdx.x} * warps + warp;
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
      const float mean_g = warp_sum(sum_g) * (1.0F / columns);
      const float mean_gx = warp_sum(sum_gx) * (1.0F / columns);
#pragma unroll
      for (int p = 0; p < PER; ++p) {
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
        const int64_t at = row * columns + (p * 32 + lane) * N;
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
    write_sums(gamma_sum, a.gamma_parts, shared);
    write_sums(beta_sum, a.beta_parts, shared);
    if constexpr (with_bias) write_sums(bias_sum, a.bias_parts, shared);
  }
};

template <typename T, int PER, bool with_residual, bool with_bias>
__global__ void __launch_bounds__(128, 2)
    norm_backward_warp_kernel(NormBackwardArguments a, Dropout dropout) {
  NormBackwardWarp<T, PER, with_residual, with_bias>::run(a, dropout);
}

}  // namespace tally::train::cuda
