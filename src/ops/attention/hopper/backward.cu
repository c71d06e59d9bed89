// The backward kernels of kernels.h, for compute capability 9.0 only.
#include <algorithm>

#include "src/device/cuda/kernel.cuh"
#include "src/ops/attention/hopper/backward.cuh"

namespace tally::train::cuda::hopper {
namespace {

constexpr int values = 8;  // 16-bit values in 16 bytes
template <int dim>
constexpr int lanes_of = dim / values;  // for a row of a head
constexpr int threads = 256;

// Rows of a head of `dim` values, `lanes` threads each.
template <typename T, int dim>
__global__ void __launch_bounds__(threads)
    attention_prepare_kernel(const Backward p, int64_t rows) {
  constexpr int lanes = lanes_of<dim>;
  const int64_t i = int64_t{blockIdx.x} * threads + threadIdx.x, r = i / lanes;
  if (i == 0) *p.next_item = 0;
  if (r >= rows) return;
  float x[values], y[values];
  widen(load<T, values>(static_cast<const T*>(p.out) + i * values), x);
  widen(load<T, values>(static_cast<const T*>(p.dout_data) + i * values), y);
  auto* sums = reinterpret_cast<float4*>(p.dq_sums);
  sums[2 * i] = sums[2 * i + 1] = float4{0, 0, 0, 0};
  float sum = 0;
#pragma unroll
  for (int k = 0; k < values; ++k) sum = fmaf(x[k], y[k], sum);
#pragma unroll
  for (int d = 1; d < lanes; d *= 2) sum += __shfl_xor_sync(0xffffffffU, sum, d);
  if (i % lanes != 0) return;
  const auto token = static_cast<int>(r / p.heads), head = static_cast<int>(r % p.heads);
  const int64_t at = (int64_t{token / p.tokens} * p.heads + head) * p.tokens + token % p.tokens;
  p.delta[at] = sum;
  p.base2_stats[at] = p.stats[at] * log2_e;
}

// Two lanes, 2 * half apart, have the same 2 * half columns of different rows. Each keeps the sums
// of one half of the columns, in column[0] to column[half - 1].
template <int half>
__device__ inline void exchange(float (&column)[16], int lane) {
  const bool upper = lane & (2 * half);
#pragma unroll
  for (int k = 0; k < half; ++k) {
    const float given = upper ? column[k] : column[half + k];
    const float kept = upper ? column[half + k] : column[k];
    column[k] = kept + __shfl_xor_sync(0xffffffffU, given, 2 * half);
  }
}

// Sums half a block's rows to 64 numbers. A thread has two rows' values of 16 columns (see
// wgmma.cuh), which it shares with eight lanes; lane l ends with columns 2 l and 2 l + 1.
__device__ inline void write_column_sums(const float (&sums)[32], float scale, float* to) {
  __shared__ float2 of_warps[4][32];
  const auto warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  float column[16];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    column[2 * j] = sums[4 * j] + sums[4 * j + 2];
    column[2 * j + 1] = sums[4 * j + 1] + sums[4 * j + 3];
  }
  exchange<8>(column, lane);
  exchange<4>(column, lane);
  exchange<2>(column, lane);
  of_warps[warp][lane] = {column[0], column[1]};
  __syncthreads();
  if (warp > 0) return;
  float2 all = of_warps[0][lane];
#pragma unroll
  for (int w = 1; w < 4; ++w) {
    all.x += of_warps[w][lane].x;
    all.y += of_warps[w][lane].y;
  }
  reinterpret_cast<float2*>(to)[lane] = {scale * all.x, scale * all.y};
}

// Half a block of queries and 64 of a head's `dim` columns.
template <typename T, int dim>
__global__ void __launch_bounds__(warpgroup) attention_finish_kernel(const Backward p) {
  __shared__ alignas(128) uint8_t staged[half_bytes];
  constexpr int panels = dim / head_dim;
  const int halves = 2 * p.blocks, panel = static_cast<int>(blockIdx.x) % panels;
  const auto head = static_cast<int>(blockIdx.x) / panels / halves,
             half = static_cast<int>(blockIdx.x) / panels % halves;
  const auto* from = reinterpret_cast<const float4*>(p.dq_sums) +
                     int64_t{blockIdx.x} * half_rows * head_dim / 4 + threadIdx.x;
  float sums[32];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float4 four = from[j * warpgroup];
    sums[4 * j] = four.x;
    sums[4 * j + 1] = four.y;
    sums[4 * j + 2] = four.z;
    sums[4 * j + 3] = four.w;
  }
  if (p.q_parts) {
    const int64_t part = int64_t{head / p.heads} * halves + half;
    write_column_sums(sums, p.scale,
                      p.q_parts + (part * p.heads + head % p.heads) * dim + panel * head_dim);
  }
  const int64_t row = (int64_t{p.heads} + 2 * p.kv_heads) * dim;
  T* to = static_cast<T*>(p.dqkv) + head % p.heads * dim + panel * head_dim +
          (int64_t{head / p.heads} * p.tokens + half * half_rows) * row;
  write_rows(sums, p.scale, p.scale, staged, to, row, 1);
}

template <typename T, bool grouped, bool dropout>
cudaError_t launch_multiply(const Backward& p, int blocks, cudaStream_t stream) {
  return launch_blocks<Shared>(attention_backward_kernel<T, grouped, dropout>, p, blocks, stream);
}
template <typename T>
cudaError_t launch_multiply(const Backward& p, int blocks, cudaStream_t stream) {
  if (p.dropout.threshold > 0)
    return p.kv_heads < p.heads ? launch_multiply<T, true, true>(p, blocks, stream)
                                : launch_multiply<T, false, true>(p, blocks, stream);
  return p.kv_heads < p.heads ? launch_multiply<T, true, false>(p, blocks, stream)
                              : launch_multiply<T, false, false>(p, blocks, stream);
}

template <int dim>
cudaError_t prepare(const Backward& p, DType dtype, cudaStream_t stream) {
  const int64_t rows = int64_t{p.batch} * p.heads * p.tokens;
  const auto blocks = static_cast<unsigned>((rows * lanes_of<dim> + threads - 1) / threads);
  if (dtype == DType::bf16)
    attention_prepare_kernel<__nv_bfloat16, dim><<<blocks, threads, 0, stream>>>(p, rows);
  else
    attention_prepare_kernel<__half, dim><<<blocks, threads, 0, stream>>>(p, rows);
  return cudaGetLastError();
}

cudaError_t multiply(const Backward& p, DType dtype, int sms, cudaStream_t stream) {
  const int blocks = std::min(sms, p.batch * p.kv_heads * p.blocks);
  return dtype == DType::bf16 ? launch_multiply<__nv_bfloat16>(p, blocks, stream)
                              : launch_multiply<__half>(p, blocks, stream);
}

template <int dim>
cudaError_t finish(const Backward& p, DType dtype, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(p.batch * p.heads * p.blocks * 2 * (dim / head_dim));
  if (dtype == DType::bf16)
    attention_finish_kernel<__nv_bfloat16, dim><<<blocks, warpgroup, 0, stream>>>(p);
  else
    attention_finish_kernel<__half, dim><<<blocks, warpgroup, 0, stream>>>(p);
  return cudaGetLastError();
}

const bool listed = [] {
  kernels.prepare = prepare<head_dim>;
  kernels.multiply = multiply;
  kernels.finish = finish<head_dim>;
  wide_kernels.prepare = prepare<wide_head_dim>;
  wide_kernels.finish = finish<wide_head_dim>;
  return true;
}();

}  // namespace
}  // namespace tally::train::cuda::hopper
