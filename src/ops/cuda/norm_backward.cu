// LayerNorm's backward pass, with the residual's gradient added and dropout's mask applied on the
// way.
//   xhat = (x - mean) rstd, g = dy gamma:  dx = rstd (g - mean(g) - xhat mean(g xhat)) +
//   residual_grad
// Each block takes every gridDim.x-th row and keeps its share of dgamma, dbeta and dbias in
// registers; a second kernel adds up the shares in the order of the blocks. Where registers allow,
// the next row is on its way while this one is reduced.
#include "src/ops/cuda/common.cuh"
#include "src/ops/cuda/cuda_ops.h"
#include "src/ops/cuda/dropout.cuh"
#include "src/ops/cuda/kernels.h"

namespace tally::train::cuda {
namespace {

struct NormBackwardArguments {
  const void *dy, *x, *gamma, *mean, *rstd, *residual_grad;
  void *dx, *ddelta, *gamma_parts, *beta_parts, *bias_parts;
  int64_t rows, columns;
};

// A thread's share of one row as it is read.
template <typename T, int N, int PER>
struct RowPart {
  Vector<T, N> x[PER], dy[PER], residual[PER];
  Acc<T> mean, rstd;

  __device__ inline void read(const NormBackwardArguments& a, int64_t row, int vectors) {
    if (row >= a.rows) return;
    const int64_t base = row * a.columns;
    mean = static_cast<const Acc<T>*>(a.mean)[row];
    rstd = static_cast<const Acc<T>*>(a.rstd)[row];
#pragma unroll
    for (int p = 0; p < PER; ++p) {
      const int i = p * blockDim.x + threadIdx.x;
      if (i >= vectors) continue;
      x[p] = load<T, N>(static_cast<const T*>(a.x) + base + i * N);
      dy[p] = load<T, N>(static_cast<const T*>(a.dy) + base + i * N);
      if (a.residual_grad) {
        residual[p] = load<T, N>(static_cast<const T*>(a.residual_grad) + base + i * N);
      }
    }
  }
};

template <typename T, int N, int PER, int most_threads, bool with_bias>
__global__ void __launch_bounds__(most_threads)
    norm_backward_kernel(NormBackwardArguments a, Dropout dropout) {
  using A = Acc<T>;
  __shared__ A shared[2][64];
  const int vectors = static_cast<int>(a.columns / N);
  dropout.resolve();
  A gamma[PER][N], gamma_sum[PER][N], beta_sum[PER][N], bias_sum[PER][N];
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    const int i = p * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < N; ++k) gamma_sum[p][k] = beta_sum[p][k] = bias_sum[p][k] = gamma[p][k] = 0;
    if (i >= vectors) continue;
    const Vector<T, N> g = load<T, N>(static_cast<const T*>(a.gamma) + i * N);
#pragma unroll
    for (int k = 0; k < N; ++k) gamma[p][k] = widen(g.v[k]);
  }
  constexpr bool ahead = PER == 1;
  RowPart<T, N, PER> here, next;
  if (ahead) next.read(a, blockIdx.x, vectors);
  for (int64_t row = blockIdx.x, turn = 0; row < a.rows; row += gridDim.x, ++turn) {
    const int64_t base = row * a.columns;
    if (ahead) {
      here = next;
      next.read(a, row + gridDim.x, vectors);
    } else {
      here.read(a, row, vectors);
    }
    const A mean = here.mean, rstd = here.rstd;
    A xhat[PER][N], g[PER][N];
    A sum_g = 0, sum_gx = 0;
#pragma unroll
    for (int p = 0; p < PER; ++p) {
      const int i = p * blockDim.x + threadIdx.x;
      if (i >= vectors) continue;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const A d = widen(here.dy[p].v[k]);
        xhat[p][k] = (widen(here.x[p].v[k]) - mean) * rstd;
        g[p][k] = d * gamma[p][k];
        gamma_sum[p][k] += d * xhat[p][k];
        beta_sum[p][k] += d;
        sum_g += g[p][k];
        sum_gx += g[p][k] * xhat[p][k];
      }
    }
    block_sum2(sum_g, sum_gx, shared[turn & 1]);
    const A mean_g = sum_g / A(a.columns), mean_gx = sum_gx / A(a.columns);
#pragma unroll
    for (int p = 0; p < PER; ++p) {
      const int i = p * blockDim.x + threadIdx.x;
      if (i >= vectors) continue;
      Vector<T, N> out;
      A dx[N];
#pragma unroll
      for (int k = 0; k < N; ++k) {
        dx[k] = rstd * (g[p][k] - mean_g - xhat[p][k] * mean_gx);
        if (a.residual_grad) dx[k] += widen(here.residual[p].v[k]);
        out.v[k] = narrow<T>(dx[k]);
      }
      store<T, N>(static_cast<T*>(a.dx) + base + i * N, out);
      if (a.ddelta) {
        if (dropout.active) dropout.apply<N>(static_cast<uint64_t>(base + i * N), dx);
#pragma unroll
        for (int k = 0; k < N; ++k) out.v[k] = narrow<T>(dx[k]);
        store<T, N>(static_cast<T*>(a.ddelta) + base + i * N, out);
      }
      if (with_bias) {
#pragma unroll
        for (int k = 0; k < N; ++k) bias_sum[p][k] += widen(out.v[k]);
      }
    }
  }
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    const int i = p * blockDim.x + threadIdx.x;
    if (i >= vectors) continue;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int64_t at = blockIdx.x * a.columns + i * N + k;
      static_cast<A*>(a.gamma_parts)[at] = gamma_sum[p][k];
      static_cast<A*>(a.beta_parts)[at] = beta_sum[p][k];
      if (with_bias) static_cast<A*>(a.bias_parts)[at] = bias_sum[p][k];
    }
  }
}

// Where the sums over rows go.
struct Sums {
  const Tensor &dgamma, &dbeta, &dbias;
};

template <typename T, int N, int PER, int most_threads, bool with_bias>
void launch(CudaStream& s, NormBackwardArguments a, const Dropout& dropout, const Sums& sums) {
  using A = Acc<T>;
  const auto kernel = norm_backward_kernel<T, N, PER, most_threads, with_bias>;
  const auto threads = static_cast<int>(divide_up(divide_up(a.columns / N, PER), 32) * 32);
  int64_t blocks = resident_blocks(s, kernel, threads);
  const auto room = static_cast<int64_t>(s.workspace_bytes() / sizeof(A)) / (3 * a.columns);
  blocks = blocks < room ? blocks : room;
  blocks = blocks < a.rows ? blocks : a.rows;
  a.gamma_parts = s.workspace();
  a.beta_parts = static_cast<A*>(s.workspace()) + blocks * a.columns;
  a.bias_parts = static_cast<A*>(s.workspace()) + 2 * blocks * a.columns;
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, s.stream()>>>(a,
                                                                                           dropout);
  CUDA_LAUNCHED();
  add_parts(s, a.gamma_parts, blocks, a.columns, sums.dgamma, sums.dbeta, sums.dbias);
}

template <typename T, int N, int PER, int most_threads>
void start(CudaStream& s, const NormBackwardArguments& a, const Dropout& dropout,
           const Sums& sums) {
  if (sums.dbias.defined()) {
    launch<T, N, PER, most_threads, true>(s, a, dropout, sums);
  } else {
    launch<T, N, PER, most_threads, false>(s, a, dropout, sums);
  }
}

template <typename T, int N>
void choose(CudaStream& s, const NormBackwardArguments& a, const Dropout& dropout,
            const Sums& sums) {
  const int64_t vectors = a.columns / N;
  if (vectors <= 256) return start<T, N, 1, 256>(s, a, dropout, sums);
  if (vectors <= 1024) return start<T, N, 2, 512>(s, a, dropout, sums);
  if (vectors <= 2048) return start<T, N, 4, 512>(s, a, dropout, sums);
  if (vectors <= 8192) return start<T, N, 8, 1024>(s, a, dropout, sums);
  throw DeviceError("layernorm_backward: rows of " + std::to_string(a.columns) +
                    " are too long for the GPU's kernel, which takes up to " +
                    std::to_string(8192 * N));
}

}  // namespace

void layernorm_backward(Stream& stream, const Tensor& dy, const Tensor& x, const Tensor& gamma,
                        const Tensor& mean, const Tensor& rstd, const Tensor& residual_grad,
                        const Tensor& dx, const Tensor& dgamma, const Tensor& dbeta, double dropout,
                        DropoutSeed seed, const Tensor& ddelta, const Tensor& /*workspace*/,
                        const Tensor& dbias) {
  CudaStream& s = cuda_stream(stream);
  const int64_t columns = x.dim(-1), rows = columns ? x.numel() / columns : 0;
  if (rows == 0) return;
  const NormBackwardArguments a{
      dy.data, x.data,  gamma.data, mean.data, rstd.data, residual_grad.data, dx.data, ddelta.data,
      nullptr, nullptr, nullptr,    rows,      columns};
  const Dropout mask(dropout, seed);
  by_type(x.dtype, __func__, [&](auto zero) {
    using T = decltype(zero);
    const auto at = [](const void* p) { return static_cast<const char*>(p); };
    if (vectorizable<T>(columns, at(a.dy), at(a.x), at(a.gamma), at(a.residual_grad), at(a.dx),
                        at(a.ddelta))) {
      choose<T, vector_size<T>>(s, a, mask, {dgamma, dbeta, dbias});
    } else {
      choose<T, 1>(s, a, mask, {dgamma, dbeta, dbias});
    }
  });
}

// The shares of the blocks live in the stream's own workspace.
size_t layernorm_workspace(Stream&, int64_t, int64_t) {
  return 0;
}

}  // namespace tally::train::cuda
