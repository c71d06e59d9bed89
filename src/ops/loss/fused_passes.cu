#include "src/ops/loss/fused_passes.h"

#include <mma.h>

#include "src/device/cuda/kernel.cuh"
#include "src/device/cuda/ptx.cuh"
#include "src/ops/loss/fused_gemm.h"
#include "src/ops/loss/softmax.cuh"

namespace tally::train::cuda {
namespace {

using bf16 = __nv_bfloat16;

constexpr int shift_threads = 256;

// A warp a token.
__global__ void __launch_bounds__(shift_threads)
    shift_kernel(const bf16* x, const bf16* w, const int32_t* labels, float* shifts,
                 int32_t* redo_count, int64_t tokens, int64_t columns) {
  constexpr int N = vector_size<bf16>;
  if (blockIdx.x == 0 && threadIdx.x == 0) *redo_count = 0;
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * shift_threads + threadIdx.x) / 32;
  if (i >= tokens) return;
  const int lane = threadIdx.x % 32;
  const int32_t label = labels[i];
  float sum = 0;
  if (label >= 0) {
    const bf16 *mine = x + i * columns, *right = w + label * columns;
    for (int64_t c = lane * N; c < columns; c += 32 * N) {
      float a[N], b[N];
      widen(load<bf16, N>(mine + c), a);
      widen(load<bf16, N>(right + c), b);
#pragma unroll
      for (int k = 0; k < N; ++k) sum = fmaf(a[k], b[k], sum);
    }
  }
  sum = warp_sum(sum);
  if (lane == 0) shifts[i] = sum * log2_e;
}

constexpr int scale_tokens = 32, scale_slices = 8;

// 32 tokens a block, so that neighbouring threads read neighbouring parts; each of a token's eight
// threads adds every eighth part.
__global__ void scale_kernel(const float* parts, int count, const int32_t* labels,
                             LossFactor factor, const StepState* state, const float* shifts,
                             RowList redo, float* losses, float* scales, bf16* e, int64_t tokens,
                             int64_t columns) {
  __shared__ float sums[scale_slices][scale_tokens];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * scale_tokens + threadIdx.x;
  const int slice = static_cast<int>(threadIdx.y);
  float sum = 0;
  if (i < tokens) {
#pragma unroll 8
    for (int p = slice; p < count; p += scale_slices) sum += parts[p * tokens + i];
  }
  sums[slice][threadIdx.x] = sum;
  __syncthreads();
  if (slice > 0 || i >= tokens) return;
  for (int s = 1; s < scale_slices; ++s) sum += sums[s][threadIdx.x];
  const int32_t label = labels[i];
  if (label < 0) {
    losses[i] = scales[i] = 0;
    return;
  }
  // This sum would be at least as large without the limit.
  const bool in_range = sum < exp2f(largest_exponent) && isfinite(shifts[i]);
  if (!in_range) {
    redo.rows[atomicAdd(redo.count, 1)] = static_cast<int32_t>(i);
    return;
  }
  const float scale = static_cast<float>(factor.get()) * (state ? state->loss_scale : 1.0F);
  losses[i] = log1pf(sum);
  scales[i] = scale / (1 + sum);
  e[i * columns + label] = narrow<bf16>(-sum);
}

// Tiles of listed rows and columns that a block computes, and pieces of the inner dimension.
constexpr int tile_rows = 32, tile_columns = 128, tile_inner = 64, redo_threads = 256;
constexpr int padded_inner = tile_inner + 8;  // so that rows begin in different banks

struct RedoTiles {
  bf16 x[tile_rows][padded_inner];
  bf16 w[tile_columns][padded_inner];
  float z[tile_rows][tile_columns];
};

// to[r] = from[row_of(r)][first ... first + tile_inner), 0 where the matrix ends.
template <int Rows, typename RowOf>
__device__ inline void load_tile(bf16 (*to)[padded_inner], const bf16* from, int64_t inner,
                                 int64_t first, const RowOf& row_of) {
  constexpr int N = vector_size<bf16>, vectors = tile_inner / N;
  for (int at = static_cast<int>(threadIdx.x); at < Rows * vectors; at += redo_threads) {
    const int r = at / vectors, c = at % vectors * N;
    const int64_t row = row_of(r);
    Vector<bf16, N> v;
#pragma unroll
    for (int k = 0; k < N; ++k) v.v[k] = narrow<bf16>(0.0F);
    if (row >= 0 && first + c < inner) v = load<bf16, N>(from + row * inner + first + c);
    store<bf16, N>(&to[r][c], v);
  }
}

// The logits of the listed rows, in e, rounded to bf16. Eight warps share a tile of 32 rows and 128
// columns; a grid of any size goes through all tiles.
__global__ void __launch_bounds__(redo_threads)
    redo_logits_kernel(const bf16* x, const bf16* w, RowList redo, bf16* e, int64_t columns,
                       int64_t inner) {
  namespace wmma = nvcuda::wmma;
  __shared__ RedoTiles t;
  const int count = *redo.count;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / 4 * 16, warp_column = warp % 4 * 32;
  const int64_t across = (columns + tile_columns - 1) / tile_columns;
  const int64_t tiles = (count + tile_rows - 1) / tile_rows * across;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t first_row = tile / across * tile_rows,
                  first_column = tile % across * tile_columns;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2];
    for (auto& s : sums) wmma::fill_fragment(s, 0.0F);
    for (int64_t k = 0; k < inner; k += tile_inner) {
      __syncthreads();  // the last use of the tiles is over
      load_tile<tile_rows>(t.x, x, inner, k, [&](int r) -> int64_t {
        return first_row + r < count ? redo.rows[first_row + r] : -1;
      });
      load_tile<tile_columns>(t.w, w, inner, k, [&](int r) -> int64_t {
        return first_column + r < columns ? first_column + r : -1;
      });
      __syncthreads();
#pragma unroll
      for (int kk = 0; kk < tile_inner; kk += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, bf16, wmma::row_major> a;
        wmma::load_matrix_sync(a, &t.x[warp_row][kk], padded_inner);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          wmma::fragment<wmma::matrix_b, 16, 16, 16, bf16, wmma::col_major> b;
          wmma::load_matrix_sync(b, &t.w[warp_column + 16 * n][kk], padded_inner);
          wmma::mma_sync(sums[n], a, b, sums[n]);
        }
      }
    }
    for (int n = 0; n < 2; ++n)
      wmma::store_matrix_sync(&t.z[warp_row][warp_column + 16 * n], sums[n], tile_columns,
                              wmma::mem_row_major);
    __syncthreads();
    for (int at = static_cast<int>(threadIdx.x); at < tile_rows * tile_columns;
         at += redo_threads) {
      const int64_t r = first_row + at / tile_columns, c = first_column + at % tile_columns;
      if (r < count && c < columns)
        e[redo.rows[r] * columns + c] = narrow<bf16>(t.z[at / tile_columns][at % tile_columns]);
    }
  }
}

// The listed rows' softmax from their logits in e: a block a row, any number of blocks.
__global__ void __launch_bounds__(redo_threads)
    redo_softmax_kernel(const int32_t* labels, int64_t vocabulary, LossFactor factor,
                        const StepState* state, RowList redo, float* losses, float* scales, bf16* e,
                        int64_t columns) {
  constexpr int N = vector_size<bf16>;
  __shared__ MaxSum<float> shared[32];
  const int count = *redo.count;
  for (int r = static_cast<int>(blockIdx.x); r < count; r += static_cast<int>(gridDim.x)) {
    const int64_t i = redo.rows[r];
    bf16* row = e + i * columns;
    const int32_t label = labels[i];
    const MaxSum<float> m = block_max_sum<bf16>(
        max_sum_of<bf16, N>(row, threadIdx.x * N, redo_threads * N, vocabulary), shared);
    const float logit = widen(row[label]);
    __syncthreads();  // the label's logit has been read
    for (int64_t c = threadIdx.x; c < columns; c += redo_threads) {
      const float y = c < vocabulary ? exponential(widen(row[c]) - m.max) : 0.0F;
      row[c] = narrow<bf16>(c == label ? y - m.sum : y);
    }
    if (threadIdx.x > 0) continue;
    const float scale = static_cast<float>(factor.get()) * (state ? state->loss_scale : 1.0F);
    losses[i] = logf(m.sum) + m.max - logit;
    scales[i] = scale / m.sum;
  }
}

}  // namespace

void label_shifts(CudaStream& s, const HeadRows16& h, float* shifts, const RowList& redo) {
  const int64_t tokens = h.head.labels.labels.numel();
  shift_kernel<<<static_cast<unsigned>(divide_up(tokens, shift_threads / 32)), shift_threads, 0,
                 s.stream()>>>(h.head.x.as<bf16>(), h.head.w.as<bf16>(),
                               h.head.labels.labels.as<int32_t>(), shifts, redo.count, tokens,
                               h.head.x.dim(-1));
  CUDA_LAUNCHED();
}

void row_scales(CudaStream& s, const HeadRows16& h, const float* parts, int64_t count,
                const float* shifts, const RowList& redo) {
  const int64_t tokens = h.head.labels.labels.numel();
  scale_kernel<<<static_cast<unsigned>(divide_up(tokens, scale_tokens)),
                 dim3(scale_tokens, scale_slices), 0, s.stream()>>>(
      parts, static_cast<int>(count), h.head.labels.labels.as<int32_t>(), h.gradient.factor,
      h.gradient.state, shifts, redo, h.results.losses.as<float>(), h.results.scales.as<float>(),
      h.results.e.as<bf16>(), tokens, h.results.e.dim(-1));
  CUDA_LAUNCHED();
}

void redo_rows(CudaStream& s, const HeadRows16& h, const RowList& redo) {
  const auto blocks = static_cast<unsigned>(2 * s.sms());
  redo_logits_kernel<<<blocks, redo_threads, 0, s.stream()>>>(
      h.head.x.as<bf16>(), h.head.w.as<bf16>(), redo, h.results.e.as<bf16>(), h.results.e.dim(-1),
      h.head.x.dim(-1));
  CUDA_LAUNCHED();
  redo_softmax_kernel<<<blocks, redo_threads, 0, s.stream()>>>(
      h.head.labels.labels.as<int32_t>(), h.head.labels.vocabulary, h.gradient.factor,
      h.gradient.state, redo, h.results.losses.as<float>(), h.results.scales.as<float>(),
      h.results.e.as<bf16>(), h.results.e.dim(-1));
  CUDA_LAUNCHED();
}

}  // namespace tally::train::cuda
