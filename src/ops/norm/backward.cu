// The norms' backward pass, which also adds the residual's gradient and applies the dropout mask.
//   xhat = (x - mean) rstd, g = dy gamma:  dx = rstd (g - mean(g) - xhat mean(g xhat)) +
//   residual_grad
// Each block takes a few rows at once, so that enough loads are in flight to keep the memory busy
// while it waits for the sums of a row. It keeps its part of dgamma, dbeta and dbias in registers;
// a second kernel adds up the parts in the order of the blocks.
#include <algorithm>

#include "src/device/cuda/dropout.cuh"
#include "src/device/cuda/kernel.cuh"
#include "src/ops/column_sums.h"
#include "src/ops/norm/backward_long.cuh"
#include "src/ops/norm/backward_warp.cuh"
#include "src/ops/norm/norm.h"

namespace tally::train::cuda {
namespace {

// A thread's values of one row as read. Everything is read from some valid address without a
// branch: a branch would make the compiler wait for one row before it loads the next.
template <typename T, int N, int PER, bool with_residual, bool centered>
struct RowPart {
  Vector<T, N> x[PER], dy[PER], residual[with_residual ? PER : 1];
  Acc<T> mean, rstd;

  __device__ inline Acc<T> xhat(int p, int k) const { return (widen(x[p].v[k]) - mean) * rstd; }

  __device__ inline void read(const NormBackwardArguments& a, int64_t row, int vectors) {
    row = row < a.rows ? row : a.rows - 1;
    mean = 0;
    if constexpr (centered) mean = static_cast<const Acc<T>*>(a.mean)[row];
    rstd = static_cast<const Acc<T>*>(a.rstd)[row];
#pragma unroll
    for (int p = 0; p < PER; ++p) {
      const int i = min(static_cast<int>(p * blockDim.x + threadIdx.x), vectors - 1);
      const int64_t at = row * a.columns + i * N;
      x[p] = load<T, N>(static_cast<const T*>(a.x) + at);
      dy[p] = load<T, N>(static_cast<const T*>(a.dy) + at);
      if constexpr (with_residual)
        residual[p] = load<T, N>(static_cast<const T*>(a.residual_grad) + at);
    }
  }
};

// Sums `count` values over the block in a fixed order; every thread gets the results. The call
// before the last one must not have used the same `shared`.
template <int count, typename A>
__device__ inline void block_sums(A (&x)[count], A (*shared)[count]) {
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
#pragma unroll
  for (int v = 0; v < count; ++v) x[v] = warp_sum(x[v]);
  if (warps == 1) return;
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (int v = 0; v < count; ++v) shared[warp][v] = x[v];
  }
  __syncthreads();
#pragma unroll
  for (int v = 0; v < count; ++v) x[v] = shared[0][v];
  for (int w = 1; w < warps; ++w) {
#pragma unroll
    for (int v = 0; v < count; ++v) x[v] += shared[w][v];
  }
}

// `centered`: LayerNorm.
template <typename T, int N, int PER, int ROWS, int most_threads, bool with_residual,
          bool with_bias, bool centered>
__global__ void __launch_bounds__(most_threads)
    norm_backward_kernel(NormBackwardArguments a, Dropout dropout) {
  using A = Acc<T>;
  __shared__ A shared[2][most_threads / 32][2 * ROWS];
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
  RowPart<T, N, PER, with_residual, centered> part[ROWS];
  const A inverse = A(1) / A(a.columns);
  int turn = 0;
  for (int64_t row = int64_t{blockIdx.x} * ROWS; row < a.rows; row += int64_t{gridDim.x} * ROWS) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) part[r].read(a, row + r, vectors);
    A sums[2 * ROWS] = {};  // sums of g and of g xhat, row by row
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      if (row + r >= a.rows) continue;
#pragma unroll
      for (int p = 0; p < PER; ++p) {
        if (p * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x) >= vectors) continue;
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const A d = widen(part[r].dy[p].v[k]), xhat = part[r].xhat(p, k), g = d * gamma[p][k];
          gamma_sum[p][k] += d * xhat;
          if constexpr (centered) {
            beta_sum[p][k] += d;
            sums[2 * r] += g;
          }
          sums[2 * r + 1] += g * xhat;
        }
      }
    }
    block_sums(sums, shared[turn++ & 1]);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      if (row + r >= a.rows) continue;
      const int64_t base = (row + r) * a.columns;
      const A mean_g = sums[2 * r] * inverse, mean_gx = sums[2 * r + 1] * inverse;
#pragma unroll
      for (int p = 0; p < PER; ++p) {
        const int i = p * blockDim.x + threadIdx.x;
        if (i >= vectors) continue;
        Vector<T, N> out;
        A dx[N];
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const A g = widen(part[r].dy[p].v[k]) * gamma[p][k];
          dx[k] = part[r].rstd * (g - mean_g - part[r].xhat(p, k) * mean_gx);
          if constexpr (with_residual) dx[k] += widen(part[r].residual[p].v[k]);
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
  }
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    const int i = p * blockDim.x + threadIdx.x;
    if (i >= vectors) continue;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int64_t at = blockIdx.x * a.columns + i * N + k;
      static_cast<A*>(a.gamma_parts)[at] = gamma_sum[p][k];
      if constexpr (centered) static_cast<A*>(a.beta_parts)[at] = beta_sum[p][k];
      if (with_bias) static_cast<A*>(a.bias_parts)[at] = bias_sum[p][k];
    }
  }
}

// The outputs of the sums over rows.
struct Sums {
  const Out &dgamma, &dbeta, &dbias;
  bool centered() const { return dbeta.defined(); }
};

// The blocks' shares of the sums over rows lie in the stream's workspace.
template <typename A>
void give_parts(CudaStream& s, NormBackwardArguments& a, int64_t blocks, const Sums& sums) {
  auto* parts = static_cast<A*>(s.workspace());
  a.gamma_parts = parts;
  a.beta_parts = parts + blocks * a.columns;
  a.bias_parts = parts + (sums.centered() ? 2 : 1) * blocks * a.columns;
}

void add_sums(CudaStream& s, const NormBackwardArguments& a, int64_t blocks, const Sums& sums) {
  const Shares shares{a.gamma_parts, blocks, a.columns};
  if (sums.centered()) return add_shares(s, shares, sums.dgamma, sums.dbeta, sums.dbias);
  add_shares(s, shares, sums.dgamma, sums.dbias);
}

template <typename T, int N, int PER, int ROWS, int most_threads, bool with_residual,
          bool with_bias, bool centered>
void launch(CudaStream& s, NormBackwardArguments a, const Dropout& dropout, const Sums& sums) {
  using A = Acc<T>;
  const auto kernel =
      norm_backward_kernel<T, N, PER, ROWS, most_threads, with_residual, with_bias, centered>;
  const auto threads = static_cast<int>(divide_up(divide_up(a.columns / N, PER), 32) * 32);
  int64_t blocks = resident_blocks(s, kernel, threads);
  const auto room = static_cast<int64_t>(s.workspace_bytes() / sizeof(A)) / (3 * a.columns);
  blocks = blocks < room ? blocks : room;
  blocks = std::min(blocks, divide_up(a.rows, ROWS));
  give_parts<A>(s, a, blocks, sums);
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, s.stream()>>>(a,
                                                                                           dropout);
  CUDA_LAUNCHED();
  add_sums(s, a, blocks, sums);
}

// Calls f with what the arguments ask for, as constants: with_residual, with_bias, centered.
template <typename F>
void with_flags(const NormBackwardArguments& a, const Sums& sums, F&& f) {
  const auto of = [](bool flag, auto&& next) {
    return flag ? next(std::true_type{}) : next(std::false_type{});
  };
  of(a.residual_grad != nullptr, [&](auto residual) {
    of(sums.dbias.defined(), [&](auto bias) {
      of(sums.centered(), [&](auto centered) { f(residual, bias, centered); });
    });
  });
}

template <typename T, int N, int PER, int ROWS, int most_threads>
void start(CudaStream& s, const NormBackwardArguments& a, const Dropout& dropout,
           const Sums& sums) {
  with_flags(a, sums, [&](auto residual, auto bias, auto centered) {
    launch<T, N, PER, ROWS, most_threads, decltype(residual)::value, decltype(bias)::value,
           decltype(centered)::value>(s, a, dropout, sums);
  });
}

// A warp a row, or WIDE warps.
template <typename T, int PER, int WIDE, bool with_residual, bool with_bias, bool centered>
void launch_warps(CudaStream& s, NormBackwardArguments a, const Dropout& dropout,
                  const Sums& sums) {
  using Kernel = NormBackwardWarp<T, PER, WIDE, with_residual, with_bias, centered>;
  const auto kernel = norm_backward_warp_kernel<T, PER, WIDE, with_residual, with_bias, centered>;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(Kernel::shared_bytes)));
  // Two blocks an SM keep the memory busy; a third would only have more sums to add up.
  const int64_t blocks =
      std::min({resident_blocks(s, kernel, Kernel::threads, Kernel::shared_bytes),
                int64_t{2} * s.sms(), divide_up(a.rows, Kernel::groups)});
  give_parts<float>(s, a, blocks, sums);
  kernel<<<static_cast<unsigned>(blocks), Kernel::threads, Kernel::shared_bytes, s.stream()>>>(
      a, dropout);
  CUDA_LAUNCHED();
  add_sums(s, a, blocks, sums);
}

template <typename T, int PER, int WIDE>
void start_warps(CudaStream& s, const NormBackwardArguments& a, const Dropout& dropout,
                 const Sums& sums) {
  with_flags(a, sums, [&](auto residual, auto bias, auto centered) {
    launch_warps<T, PER, WIDE, decltype(residual)::value, decltype(bias)::value,
                 decltype(centered)::value>(s, a, dropout, sums);
  });
}

template <typename T, int N>
void start_long(CudaStream& s, NormBackwardArguments a, const Dropout& dropout, const Sums& sums) {
  norm_backward_row_kernel<T, N>
      <<<static_cast<unsigned>(a.rows), long_row_threads, 0, s.stream()>>>(a, dropout);
  CUDA_LAUNCHED();
  // Two blocks an SM, of a few rows each.
  const int64_t wide = divide_up(a.columns, int64_t{long_column_threads} * N);
  const auto room = static_cast<int64_t>(s.workspace_bytes() / sizeof(Acc<T>)) / (3 * a.columns);
  const int64_t parts =
      std::max<int64_t>(1, std::min({divide_up(2 * int64_t{s.sms()}, wide), a.rows, room}));
  give_parts<Acc<T>>(s, a, parts, sums);
  const dim3 grid(static_cast<unsigned>(wide), static_cast<unsigned>(parts));
  norm_backward_columns_kernel<T, N><<<grid, long_column_threads, 0, s.stream()>>>(
      a, static_cast<const T*>(a.ddelta ? a.ddelta : a.dx), sums.dbias.defined());
  CUDA_LAUNCHED();
  add_sums(s, a, parts, sums);
}

template <typename T, int N>
void choose(CudaStream& s, const NormBackwardArguments& a, const Dropout& dropout,
            const Sums& sums) {
  const int64_t vectors = a.columns / N;
  const bool started = with_row_shape<T, N>(vectors, [&](auto shape) {
    start_warps<T, decltype(shape)::per, decltype(shape)::wide>(s, a, dropout, sums);
  });
  if (started) return;
  if (vectors <= 256) return start<T, N, 1, 2, 256>(s, a, dropout, sums);
  if (vectors <= 640) return start<T, N, 1, 2, 640>(s, a, dropout, sums);
  if (vectors <= 1024) return start<T, N, 2, 1, 512>(s, a, dropout, sums);
  start_long<T, N>(s, a, dropout, sums);
}

void backward(Stream& stream, const NormOperands& in, const NormGradients& out) {
  CudaStream& s = cuda_stream(stream);
  const int64_t columns = in.x.dim(-1), rows = columns ? in.x.numel() / columns : 0;
  if (rows == 0) return;
  const NormBackwardArguments a{in.dy.data,   in.x.data,       in.gamma.data,
                                in.mean.data, in.rstd.data,    in.residual_grad.data,
                                out.dx.data,  out.ddelta.data, nullptr,
                                nullptr,      nullptr,         rows,
                                columns};
  const Dropout mask(out.mask);
  const Sums sums{out.dgamma, out.dbeta, out.dbias};
  by_type(in.x.dtype, layernorm_backward.name(), [&](auto zero) {
    using T = decltype(zero);
    const auto at = [](const void* p) { return static_cast<const char*>(p); };
    if (vectorizable<T>(columns, at(a.dy), at(a.x), at(a.gamma), at(a.residual_grad), at(a.dx),
                        at(a.ddelta))) {
      choose<T, vector_size<T>>(s, a, mask, sums);
    } else {
      choose<T, 1>(s, a, mask, sums);
    }
  });
}

const OnCuda version(layernorm_backward, backward);

}  // namespace
}  // namespace tally::train::cuda
