// The norms' backward pass over long rows, whose sums over rows do not fit a block's registers:
// one kernel for dx and ddelta, a block a row, and one for dgamma, dbeta and dbias, which reads the
// same again, mostly from L2. Rows may have any length. RMSNorm has no mean.
#pragma once

#include "src/device/cuda/dropout.cuh"
#include "src/ops/norm/backward_warp.cuh"

namespace tally::train::cuda {

constexpr int long_row_threads = 512, long_column_threads = 128;

// Sums both values over the block in a fixed order; every thread gets the results.
template <typename A>
__device__ inline void block_sum_pair(A (&x)[2]) {
  __shared__ A shared[2][long_row_threads / 32];
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll
  for (int v = 0; v < 2; ++v) {
    x[v] = warp_sum(x[v]);
    if (lane == 0) shared[v][warp] = x[v];
  }
  __syncthreads();
#pragma unroll
  for (int v = 0; v < 2; ++v)
    x[v] = warp_sum(lane < long_row_threads / 32 ? shared[v][lane] : A(0));
}

template <typename T, int N>
__global__ void __launch_bounds__(long_row_threads)
    norm_backward_row_kernel(NormBackwardArguments a, Dropout dropout) {
  using A = Acc<T>;
  dropout.resolve();
  const int64_t row = blockIdx.x, base = row * a.columns;
  const A mean = a.mean ? static_cast<const A*>(a.mean)[row] : A(0);
  const A rstd = static_cast<const A*>(a.rstd)[row];
  const T *x = static_cast<const T*>(a.x) + base, *dy = static_cast<const T*>(a.dy) + base,
          *gamma = static_cast<const T*>(a.gamma);
  const int64_t first = int64_t{threadIdx.x} * N, step = int64_t{long_row_threads} * N;
  A sums[2] = {0, 0};  // sums of g and of g xhat
  for (int64_t c = first; c < a.columns; c += step) {
    const Vector<T, N> xs = load<T, N>(x + c), ds = load<T, N>(dy + c), gs = load<T, N>(gamma + c);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const A g = widen(ds.v[k]) * widen(gs.v[k]);
      sums[0] += g;
      sums[1] += g * ((widen(xs.v[k]) - mean) * rstd);
    }
  }
  block_sum_pair(sums);
  const A mean_g = a.mean ? sums[0] / A(a.columns) : A(0), mean_gx = sums[1] / A(a.columns);
  for (int64_t c = first; c < a.columns; c += step) {
    const Vector<T, N> xs = load<T, N>(x + c), ds = load<T, N>(dy + c), gs = load<T, N>(gamma + c);
    Vector<T, N> residual{}, out;
    if (a.residual_grad) residual = load<T, N>(static_cast<const T*>(a.residual_grad) + base + c);
    A dx[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const A xhat = (widen(xs.v[k]) - mean) * rstd;
      dx[k] = rstd * (widen(ds.v[k]) * widen(gs.v[k]) - mean_g - xhat * mean_gx);
      if (a.residual_grad) dx[k] += widen(residual.v[k]);
      out.v[k] = narrow<T>(dx[k]);
    }
    store<T, N>(static_cast<T*>(a.dx) + base + c, out);
    if (!a.ddelta) continue;
    if (dropout.active) dropout.apply<N>(static_cast<uint64_t>(base + c), dx);
#pragma unroll
    for (int k = 0; k < N; ++k) out.v[k] = narrow<T>(dx[k]);
    store<T, N>(static_cast<T*>(a.ddelta) + base + c, out);
  }
}

// The sums over the rows of part blockIdx.y, of a thread's N columns. `after`: ddelta, or dx.
template <typename T, int N>
__global__ void __launch_bounds__(long_column_threads)
    norm_backward_columns_kernel(NormBackwardArguments a, const T* after, bool with_bias) {
  using A = Acc<T>;
  const int64_t c = (int64_t{blockIdx.x} * long_column_threads + threadIdx.x) * N;
  if (c >= a.columns) return;
  const int64_t rows = (a.rows + gridDim.y - 1) / gridDim.y, first = blockIdx.y * rows,
                end = min(first + rows, a.rows);
  A gamma_sum[N] = {}, beta_sum[N] = {}, bias_sum[N] = {};
#pragma unroll 4
  for (int64_t row = first; row < end; ++row) {
    const int64_t at = row * a.columns + c;
    const A mean = a.mean ? static_cast<const A*>(a.mean)[row] : A(0);
    const A rstd = static_cast<const A*>(a.rstd)[row];
    const Vector<T, N> x = load<T, N>(static_cast<const T*>(a.x) + at),
                       dy = load<T, N>(static_cast<const T*>(a.dy) + at);
    Vector<T, N> bias{};
    if (with_bias) bias = load<T, N>(after + at);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const A d = widen(dy.v[k]);
      gamma_sum[k] += d * ((widen(x.v[k]) - mean) * rstd);
      beta_sum[k] += d;
      bias_sum[k] += widen(bias.v[k]);
    }
  }
  const int64_t part = blockIdx.y * a.columns + c;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    static_cast<A*>(a.gamma_parts)[part + k] = gamma_sum[k];
    if (a.mean) static_cast<A*>(a.beta_parts)[part + k] = beta_sum[k];
    if (with_bias) static_cast<A*>(a.bias_parts)[part + k] = bias_sum[k];
  }
}

}  // namespace tally::train::cuda
