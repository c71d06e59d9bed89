// LayerNorm and RMSNorm, alone or with the residual addition before it. A row is held in registers:
// one read, one write. For the usual widths warps go from row to row (forward_warp.cuh). For
// others, rows of up to 256 vectors take one warp and longer ones a block.
#include <algorithm>

#include "src/device/cuda/dropout.cuh"
#include "src/device/cuda/kernel.cuh"
#include "src/ops/norm/forward_warp.cuh"
#include "src/ops/norm/norm.h"

namespace tally::train::cuda {
namespace {

// blockDim.x threads a row, blockDim.y rows a block; PER vectors of N values a thread.
// `centered`: LayerNorm.
template <typename T, int N, int PER, int most_threads, bool with_delta, bool centered>
__global__ void __launch_bounds__(most_threads) norm_kernel(NormArguments a, Dropout dropout) {
  using A = Acc<T>;
  __shared__ A shared[64];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (with_delta) dropout.resolve();
  if (row >= a.rows) return;  // whole warps: more than one row a block only where a row is a warp
  const int64_t base = row * a.columns;
  const int vectors = static_cast<int>(a.columns / N);
  // Everything is read before anything is used, and without a branch, which would make the compiler
  // wait for one vector before it loads the next: threads beyond the row read its last vector.
  Vector<T, N> in[PER], delta[with_delta ? PER : 1], gamma[PER], beta[centered ? PER : 1];
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    const int i = min(static_cast<int>(p * blockDim.x + threadIdx.x), vectors - 1);
    in[p] = load<T, N>(static_cast<const T*>(a.x) + base + i * N);
    if constexpr (with_delta) delta[p] = load<T, N>(static_cast<const T*>(a.delta) + base + i * N);
  }
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    const int i = min(static_cast<int>(p * blockDim.x + threadIdx.x), vectors - 1);
    gamma[p] = load<T, N>(static_cast<const T*>(a.gamma) + i * N);
    if constexpr (centered) beta[p] = load<T, N>(static_cast<const T*>(a.beta) + i * N);
  }
  A x[PER][N];
  A sum = 0, unused = 0;
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    const int i = p * blockDim.x + threadIdx.x;
    if (i >= vectors) continue;
#pragma unroll
    for (int k = 0; k < N; ++k) x[p][k] = widen(in[p].v[k]);
    if constexpr (with_delta) {
      A change[N];
#pragma unroll
      for (int k = 0; k < N; ++k) change[k] = widen(delta[p].v[k]);
      if (dropout.active) dropout.apply<N>(static_cast<uint64_t>(base + i * N), change);
      Vector<T, N> r;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        r.v[k] = narrow<T>(x[p][k] + change[k]);
        x[p][k] = widen(r.v[k]);  // the value that the backward pass will see
      }
      store<T, N>(static_cast<T*>(a.r) + base + i * N, r);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) sum += x[p][k];
  }
  A mean = 0;
  if constexpr (centered) {
    block_sum2(sum, unused, shared);
    mean = sum / A(a.columns);
  }
  A squares = 0;
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    if (p * blockDim.x + threadIdx.x >= vectors) continue;
#pragma unroll
    for (int k = 0; k < N; ++k) squares += (x[p][k] - mean) * (x[p][k] - mean);
  }
  block_sum2(squares, unused, shared);
  const A rstd = A(1) / sqrt(squares / A(a.columns) + A(a.epsilon));
  if (threadIdx.x == 0) {
    if constexpr (centered) static_cast<A*>(a.mean)[row] = mean;
    static_cast<A*>(a.rstd)[row] = rstd;
  }
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    const int i = p * blockDim.x + threadIdx.x;
    if (i >= vectors) continue;
    Vector<T, N> out;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if constexpr (centered) {
        out.v[k] = narrow<T>((x[p][k] - mean) * rstd * widen(gamma[p].v[k]) + widen(beta[p].v[k]));
      } else {
        out.v[k] = narrow<T>(x[p][k] * rstd * widen(gamma[p].v[k]));
      }
    }
    store<T, N>(static_cast<T*>(a.y) + base + i * N, out);
  }
}

template <typename T, int N, int PER, int most_threads = 128>
void start(CudaStream& s, const NormArguments& a, const Dropout& dropout, int threads, int rows) {
  const auto blocks = static_cast<unsigned>(divide_up(a.rows, rows));
  const dim3 block(static_cast<unsigned>(threads), static_cast<unsigned>(rows));
  const auto run = [&](auto kernel) { kernel<<<blocks, block, 0, s.stream()>>>(a, dropout); };
  if (a.beta) {
    run(a.delta ? norm_kernel<T, N, PER, most_threads, true, true>
                : norm_kernel<T, N, PER, most_threads, false, true>);
  } else {
    run(a.delta ? norm_kernel<T, N, PER, most_threads, true, false>
                : norm_kernel<T, N, PER, most_threads, false, false>);
  }
  CUDA_LAUNCHED();
}

// A warp a row, or WIDE warps.
template <typename T, int PER, int WIDE, bool with_delta, bool centered>
void launch_warps(CudaStream& s, const NormArguments& a, const Dropout& dropout) {
  using Rows = NormForwardRows<T, PER, WIDE, with_delta>;
  const auto kernel = norm_forward_warp_kernel<T, PER, WIDE, with_delta, centered>;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(Rows::shared_bytes)));
  const int64_t resident = resident_blocks(s, kernel, Rows::threads, Rows::shared_bytes);
  const int64_t blocks = std::min(resident, divide_up(a.rows, Rows::groups));
  kernel<<<static_cast<unsigned>(blocks), Rows::threads, Rows::shared_bytes, s.stream()>>>(a,
                                                                                           dropout);
  CUDA_LAUNCHED();
}
template <typename T, int N>
void choose(CudaStream& s, const NormArguments& a, const Dropout& dropout) {
  const int64_t vectors = a.columns / N;
  const auto start_warps = [&](auto shape) {
    constexpr int PER = decltype(shape)::per, WIDE = decltype(shape)::wide;
    if (a.beta)
      return a.delta ? launch_warps<T, PER, WIDE, true, true>(s, a, dropout)
                     : launch_warps<T, PER, WIDE, false, true>(s, a, dropout);
    return a.delta ? launch_warps<T, PER, WIDE, true, false>(s, a, dropout)
                   : launch_warps<T, PER, WIDE, false, false>(s, a, dropout);
  };
  if (with_row_shape<T, N>(vectors, start_warps)) return;
  if (vectors <= 256) {
    const auto per = static_cast<int>(divide_up(vectors, 32));
    if (N == 1) {  // odd widths: a few variants suffice
      if (per <= 2) return start<T, N, 2>(s, a, dropout, 32, 4);
      return start<T, N, 8>(s, a, dropout, 32, 4);
    }
    switch (per) {
      case 1:
        return start<T, N, 1>(s, a, dropout, 32, 4);
      case 2:
        return start<T, N, 2>(s, a, dropout, 32, 4);
      case 3:
        return start<T, N, 3>(s, a, dropout, 32, 4);
      case 4:
        return start<T, N, 4>(s, a, dropout, 32, 4);
      case 5:
      case 6:
        return start<T, N, 6>(s, a, dropout, 32, 4);
      default:
        return start<T, N, 8>(s, a, dropout, 32, 4);
    }
  }
  if (vectors > 8192) {
    throw DeviceError("layernorm: rows of " + std::to_string(a.columns) +
                      " are too long for the GPU's kernel, which takes up to " +
                      std::to_string(8192 * N));
  }
  if (vectors <= 4096) {
    const auto threads = static_cast<int>(divide_up(divide_up(vectors, 4), 32) * 32);
    // Blocks of up to 512 threads have the registers for a whole row.
    if (threads <= 512) return start<T, N, 4, 512>(s, a, dropout, threads, 1);
    return start<T, N, 4, 1024>(s, a, dropout, threads, 1);
  }
  start<T, N, 8, 1024>(s, a, dropout, 1024, 1);
}

// Computes the norm alone where there is no delta and no r.
void normalize(Stream& stream, const char* op, const ResidualSum& sum, const NormWeights& weights,
               const NormOutputs& out, const Out& r = {}) {
  const int64_t columns = sum.x.dim(-1);
  const NormArguments a{sum.x.data,        sum.delta.data, weights.gamma.data,
                        weights.beta.data, r.data,         out.y.data,
                        out.mean.data,     out.rstd.data,  columns ? sum.x.numel() / columns : 0,
                        columns,           weights.epsilon};
  if (a.rows == 0 || a.columns == 0) return;
  CudaStream& s = cuda_stream(stream);
  const Dropout dropout(sum.mask);
  by_type(sum.x.dtype, op, [&](auto zero) {
    using T = decltype(zero);
    const auto at = [](const void* p) { return static_cast<const char*>(p); };
    if (vectorizable<T>(a.columns, at(a.x), at(a.delta), at(a.gamma), at(a.beta), at(a.r),
                        at(a.y))) {
      choose<T, vector_size<T>>(s, a, dropout);
    } else {
      choose<T, 1>(s, a, dropout);
    }
  });
}

void forward(Stream& s, In x, NormWeights weights, NormOutputs out) {
  normalize(s, layernorm_forward.name(), {x, {}, {}}, weights, out);
}

void residual_then_forward(Stream& s, ResidualSum sum, NormWeights weights, Out r,
                           NormOutputs out) {
  normalize(s, residual_layernorm_forward.name(), sum, weights, out, r);
}

const OnCuda versions[] = {{layernorm_forward, forward},
                           {residual_layernorm_forward, residual_then_forward}};

}  // namespace
}  // namespace tally::train::cuda
