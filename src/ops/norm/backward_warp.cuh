// The norms' backward pass over the rows of rows.cuh. A lane keeps gamma and its part of the sums
// over rows in registers. At the end the warps of a block add theirs up in shared memory, and
// backward.cu adds up the blocks'.
#pragma once

#include "src/device/cuda/dropout.cuh"
#include "src/ops/norm/rows.cuh"

namespace tally::train::cuda {

struct NormBackwardArguments {
  const void *dy, *x, *gamma, *mean, *rstd, *residual_grad;
  void *dx, *ddelta, *gamma_parts, *beta_parts, *bias_parts;
  int64_t rows, columns;
};

// `centered`: LayerNorm.
template <typename T, int PER, int WIDE, bool with_residual, bool with_bias, bool centered>
struct NormBackwardWarp {
  using Rows = NormRows<T, PER, WIDE, with_residual ? 3 : 2, 1>;
  static constexpr int N = Rows::N, threads = Rows::threads, groups = Rows::groups;
  static constexpr size_t shared_bytes = Rows::shared_bytes;
  // Values are widened once, unless the sums need the registers.
  using Gamma = std::conditional_t<(PER * N > 32), Vector<T, N>, Vector<float, N>>;
  static_assert(N % 4 == 0 && shared_bytes >= sizeof(float) * groups * Rows::most_columns);

  // Adds up the groups' sums in shared memory, in their order.
  __device__ static void write_sums(const float (&sum)[PER][N], int columns, void* parts,
                                    float* shared) {
    const auto group = static_cast<int>(threadIdx.x / (32 * WIDE));
    __syncthreads();
#pragma unroll
    for (int p = 0; p < PER; ++p) {
#pragma unroll
      for (int k = 0; k < N; k += 4) {
        *reinterpret_cast<float4*>(shared + group * Rows::most_columns + Rows::first_column() +
                                   p * Rows::stride +
                                   k) = {sum[p][k], sum[p][k + 1], sum[p][k + 2], sum[p][k + 3]};
      }
    }
    __syncthreads();
    for (auto c = static_cast<int>(threadIdx.x); c < columns; c += threads) {
      float total = 0;
#pragma unroll
      for (int g = 0; g < groups; ++g) total += shared[g * Rows::most_columns + c];
      static_cast<float*>(parts)[int64_t{blockIdx.x} * columns + c] = total;
    }
  }

  __device__ static void run(const NormBackwardArguments& a, Dropout dropout) {
    Rows rows;
    rows.from[0] = a.x;
    rows.from[1] = a.dy;
    if constexpr (with_residual) rows.from[2] = a.residual_grad;
    rows.rows = a.rows;
    rows.columns = WIDE == 1 ? Rows::most_columns : static_cast<int>(a.columns);
    auto* const ring = Rows::slots_of_warp();
    const auto lane = static_cast<int>(threadIdx.x % 32);
    dropout.resolve();
    Gamma gamma[PER];
    float gamma_sum[PER][N] = {}, beta_sum[PER][N] = {}, bias_sum[PER][N] = {};
    rows.parameters(a.gamma, gamma);
    const auto *means = static_cast<const float*>(a.mean),
               *rstds = static_cast<const float*>(a.rstd);
    const float share = 1.0F / static_cast<float>(rows.columns);
    const int64_t step = Rows::step();
    int64_t row = Rows::first_row();
    rows.fetch(ring[0], row);
    float next_mean = 0, next_rstd = 0;
    if (row < a.rows) {
      if constexpr (centered) next_mean = means[row];
      next_rstd = rstds[row];
    }
    for (int turn = 0; row < a.rows; row += step, turn ^= 1) {
      const float rstd = next_rstd, shift = -next_mean * next_rstd;  // xhat = x rstd + shift
      rows.fetch(ring[turn ^ 1], row + step);
      if (row + step < a.rows) {
        if constexpr (centered) next_mean = means[row + step];
        next_rstd = rstds[row + step];
      }
      Rows::wait();
      const auto& in = ring[turn];
      float sums[2] = {0, 0};  // sums of g = dy gamma and of g xhat
#pragma unroll
      for (int p = 0; p < PER; ++p) {
        if (!rows.has(p)) continue;
        float x[N], dy[N], scale[N];
        widen(in[0][p][lane], x);
        widen(in[1][p][lane], dy);
        widen(gamma[p], scale);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const float xhat = fmaf(x[k], rstd, shift), g = dy[k] * scale[k];
          gamma_sum[p][k] = fmaf(dy[k], xhat, gamma_sum[p][k]);
          if constexpr (centered) {
            beta_sum[p][k] += dy[k];
            sums[0] += g;
          }
          sums[1] = fmaf(g, xhat, sums[1]);
        }
      }
      Rows::row_sums(sums, turn);
      // rstd (g - mean(g) - xhat mean(g xhat)) = rstd g + slope x + offset
      const float mean_gx = sums[1] * share;
      const float slope = -rstd * rstd * mean_gx;
      const float offset = -rstd * fmaf(shift, mean_gx, sums[0] * share);
#pragma unroll
      for (int p = 0; p < PER; ++p) {
        if (!rows.has(p)) continue;
        float x[N], dy[N], scale[N], dx[N];
        widen(in[0][p][lane], x);
        widen(in[1][p][lane], dy);
        widen(gamma[p], scale);
#pragma unroll
        for (int k = 0; k < N; ++k) dx[k] = fmaf(dy[k] * scale[k], rstd, fmaf(x[k], slope, offset));
        if constexpr (with_residual) {
          float residual[N];
          widen(in[2][p][lane], residual);
#pragma unroll
          for (int k = 0; k < N; ++k) dx[k] += residual[k];
        }
        Vector<T, N> out;
#pragma unroll
        for (int k = 0; k < N; ++k) out.v[k] = narrow<T>(dx[k]);
        const int64_t at = rows.offset(row, p);
        store<T, N>(static_cast<T*>(a.dx) + at, out);
        if (a.ddelta) {
          if (dropout.active) dropout.apply<N>(static_cast<uint64_t>(at), dx);
#pragma unroll
          for (int k = 0; k < N; ++k) out.v[k] = narrow<T>(dx[k]);
          store<T, N>(static_cast<T*>(a.ddelta) + at, out);
        }
        if constexpr (with_bias) {
          widen(out, dx);
#pragma unroll
          for (int k = 0; k < N; ++k) bias_sum[p][k] += dx[k];
        }
      }
    }
    __pipeline_wait_prior(0);
    extern __shared__ float4 shared_memory[];
    auto* shared = reinterpret_cast<float*>(shared_memory);
    write_sums(gamma_sum, rows.columns, a.gamma_parts, shared);
    if constexpr (centered) write_sums(beta_sum, rows.columns, a.beta_parts, shared);
    if constexpr (with_bias) write_sums(bias_sum, rows.columns, a.bias_parts, shared);
  }
};

template <typename T, int PER, int WIDE, bool with_residual, bool with_bias, bool centered>
__global__ void __launch_bounds__(128, 2)
    norm_backward_warp_kernel(NormBackwardArguments a, Dropout dropout) {
  NormBackwardWarp<T, PER, WIDE, with_residual, with_bias, centered>::run(a, dropout);
}

}  // namespace tally::train::cuda
