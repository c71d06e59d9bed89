// RMSNorm of the heads of Q and K: a warp a head, whose values stay in registers.
#include "src/device/cuda/kernel.cuh"
#include "src/ops/column_sums.h"
#include "src/ops/norm/head_norm.h"

namespace tally::train::cuda {
namespace {

constexpr int warps = 8, most_width = 256, held = most_width / lanes;

template <typename T>
struct HeadRows {
  T* qkv;
  T* raw;
  Acc<T>* rstd;
  const T *gamma_q, *gamma_k;
  int64_t count;  // heads of Q and K of all tokens
  int heads, q, width, token;
  double epsilon;

  __device__ T* head(int64_t i) const { return qkv + i / heads * token + i % heads * width; }
  __device__ bool of_q(int64_t i) const { return i % heads < q; }
};

template <typename T>
__global__ void __launch_bounds__(warps* lanes) forward_kernel(HeadRows<T> r) {
  using A = Acc<T>;
  const int64_t i = int64_t{blockIdx.x} * warps + threadIdx.x / lanes;
  const int lane = threadIdx.x % lanes;
  if (i >= r.count) return;
  T* const head = r.head(i);
  const T* const gamma = r.of_q(i) ? r.gamma_q : r.gamma_k;
  A x[held], squares = 0;
#pragma unroll
  for (int k = 0; k < held; ++k) {
    const int j = lane + k * lanes;
    x[k] = j < r.width ? widen(head[j]) : A(0);
    squares += x[k] * x[k];
  }
  const A scale = A(1) / sqrt(warp_sum(squares) / A(r.width) + A(r.epsilon));
  if (lane == 0) r.rstd[i] = scale;
#pragma unroll
  for (int k = 0; k < held; ++k) {
    const int j = lane + k * lanes;
    if (j >= r.width) continue;
    r.raw[i * r.width + j] = head[j];
    head[j] = narrow<T>(x[k] * scale * widen(gamma[j]));
  }
}

// parts[block, D] of Q's weight, and after all of them those of K's.
template <typename T>
__global__ void __launch_bounds__(warps* lanes) backward_kernel(HeadRows<T> r, Acc<T>* parts) {
  using A = Acc<T>;
  const int lane = threadIdx.x % lanes, warp = threadIdx.x / lanes;
  A sum_q[held] = {}, sum_k[held] = {};
  for (int64_t i = int64_t{blockIdx.x} * warps + warp; i < r.count;
       i += int64_t{gridDim.x} * warps) {
    T* const dy = r.head(i);
    const bool of_q = r.of_q(i);
    const T* const gamma = of_q ? r.gamma_q : r.gamma_k;
    const A rstd = r.rstd[i];
    A d[held], n[held], product = 0;
#pragma unroll
    for (int k = 0; k < held; ++k) {
      const int j = lane + k * lanes;
      d[k] = j < r.width ? widen(dy[j]) : A(0);
      n[k] = j < r.width ? widen(r.raw[i * r.width + j]) * rstd : A(0);
      (of_q ? sum_q[k] : sum_k[k]) += d[k] * n[k];
      if (j < r.width) d[k] *= widen(gamma[j]);
      product += d[k] * n[k];
    }
    const A mean = warp_sum(product) / A(r.width);
#pragma unroll
    for (int k = 0; k < held; ++k) {
      const int j = lane + k * lanes;
      if (j < r.width) dy[j] = narrow<T>(rstd * (d[k] - n[k] * mean));
    }
  }
  __shared__ A shared[warps][most_width];
  for (int part = 0; part < 2; ++part) {
#pragma unroll
    for (int k = 0; k < held; ++k) shared[warp][lane + k * lanes] = part == 0 ? sum_q[k] : sum_k[k];
    __syncthreads();
    for (int j = threadIdx.x; j < r.width; j += warps * lanes) {
      A sum = 0;
      for (int w = 0; w < warps; ++w) sum += shared[w][j];
      parts[(int64_t{part} * gridDim.x + blockIdx.x) * r.width + j] = sum;
    }
    __syncthreads();
  }
}

template <typename T>
HeadRows<T> rows_of(const Out& qkv, const HeadNormWeights& w, const SavedHeads& saved) {
  const auto width = static_cast<int>(qkv.dim(-1)), kv = static_cast<int>(w.kv_heads);
  if (width > most_width) throw DeviceError("head_norm: heads of more than 256 dimensions");
  const int64_t tokens = qkv.dim(0) * qkv.dim(1);
  const int token = tokens > 0 ? static_cast<int>(qkv.numel() / tokens) : 0;
  const int heads = token / width - kv;
  return {qkv.as<T>(), saved.raw.as<T>(), saved.rstd.as<Acc<T>>(),
          w.q.as<T>(), w.k.as<T>(),       tokens * heads,
          heads,       heads - kv,        width,
          token,       w.epsilon};
}

void forward(Stream& stream, Out qkv, const HeadNormWeights& w, const SavedHeads& saved) {
  CudaStream& s = cuda_stream(stream);
  by_type(qkv.dtype, head_norm_forward.name(), [&](auto zero) {
    using T = decltype(zero);
    const HeadRows<T> r = rows_of<T>(qkv, w, saved);
    if (r.count == 0) return;
    const auto blocks = static_cast<unsigned>(divide_up(r.count, int64_t{warps}));
    forward_kernel<T><<<blocks, warps * lanes, 0, s.stream()>>>(r);
    CUDA_LAUNCHED();
  });
}

void backward(Stream& stream, const HeadNormWeights& w, const SavedHeads& saved,
              const HeadNormGradients& out) {
  CudaStream& s = cuda_stream(stream);
  by_type(out.dqkv.dtype, head_norm_backward.name(), [&](auto zero) {
    using T = decltype(zero);
    const HeadRows<T> r = rows_of<T>(out.dqkv, w, saved);
    if (r.count == 0) return;
    auto* const parts = static_cast<Acc<T>*>(s.workspace());
    const auto blocks = static_cast<int64_t>(resident_blocks(s, backward_kernel<T>, warps * lanes));
    backward_kernel<T><<<static_cast<unsigned>(blocks), warps * lanes, 0, s.stream()>>>(r, parts);
    CUDA_LAUNCHED();
    add_shares(s, {parts, blocks, r.width}, out.dq, out.dk);
  });
}

const OnCuda versions[] = {{head_norm_forward, forward}, {head_norm_backward, backward}};

}  // namespace
}  // namespace tally::train::cuda
