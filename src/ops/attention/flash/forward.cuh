// The forward pass of flash.h, over the arithmetic of tiles.cuh. D is the
// head's size rounded up; columns beyond head_dim and rows beyond the tokens are zero in shared
// memory.
#pragma once

#include "src/ops/attention/flash/blocks.cuh"

namespace tally::train::cuda {

// One block of 128 queries of one head, 32 a warp.
template <class Math, int D>
struct Forward {
  static constexpr int queries = 128, keys = D <= 64 ? 64 : 32, p_leading = keys + 4;
  using Q = Block<Math, queries, D, 4>;
  using K = Block<Math, keys, D, 4>;
  using V = Block<Math, keys, D, 8>;
  using Scores = typename Math::template Tile<32, keys, false, true>;
  using Out = typename Math::template Tile<32, D, false, false>;
  static constexpr size_t shared_bytes =
      sizeof(float) * (Q::size + K::size + V::size + queries * p_leading);

  // Each row's highest score so far, and the sum over this lane's columns.
  float top[Scores::rows], sum[Scores::rows];

  // Turns scores into probabilities relative to the new maximum, in shared memory, and rescales
  // `out` and the sums. `edge`: the block has columns that a row does not see.
  template <bool edge>
  __device__ void softmax(const Flash& p, Scores& s, Out& out, float* to, int row0, int col0) {
    const float scale = p.scale * log2_e;
#pragma unroll
    for (int i = 0; i < Scores::rows; ++i) {
      const int row = row0 + Scores::row(i);
      const int visible = (p.causal ? min(row + 1, p.tokens) : p.tokens) - col0;
      float high = top[i];
#pragma unroll
      for (int j = 0; j < Scores::cols; ++j) {
        if (edge && Scores::col(j) >= visible) s.value(i, j) = -INFINITY;
        high = fmaxf(high, s.value(i, j));  // drops a NaN; the sum does not
      }
      // Every row sees a column of the first block, so this is a number from then on.
      high = Math::over_row(high, [](float a, float b) { return fmaxf(a, b); });
      const float shrink = exp2_fast((top[i] - high) * scale), shift = -high * scale;
      top[i] = high;
      sum[i] *= shrink;
#pragma unroll
      for (int j = 0; j < Scores::cols; j += 2) {
        const float x = exp2_fast(fmaf(s.value(i, j), scale, shift));
        const float y = exp2_fast(fmaf(s.value(i, j + 1), scale, shift));
        sum[i] += x + y;
        put<Math>(to + Scores::row(i) * p_leading, Scores::col(j), Scores::col(j + 1),
                  Math::stored_number(x), Math::stored_number(y));
      }
#pragma unroll
      for (int j = 0; j < Out::cols; ++j) out.value(i, j) *= shrink;
    }
  }

  // Writes this warp's P M of one block to shared memory, from its scores.
  __device__ void weigh(const Flash& p, Scores& s, Out& out, float* own, int64_t head,
                        uint64_t seed, int row0, int col0) {
    if (col0 + keys > p.tokens || (p.causal && col0 + keys > row0 + 1)) {
      softmax<true>(p, s, out, own, row0, col0);
    } else {
      softmax<false>(p, s, out, own, row0, col0);
    }
    __syncwarp();
    if (!p.dropout) return;
    mask_block<32, keys, 32>(p, seed, head, row0, col0, lane_id(), [&](int row, int col, float4 f) {
      auto* x = reinterpret_cast<float4*>(own + row * p_leading + col);
      const float4 v = *x;
      *x = {Math::stored(v.x * f.x), Math::stored(v.y * f.y), Math::stored(v.z * f.z),
            Math::stored(v.w * f.w)};
    });
  }

  __device__ void run(const Flash& p) {
    extern __shared__ float4 shared_memory[];
    auto* q = reinterpret_cast<float*>(shared_memory);
    float *k = q + Q::size, *v = k + K::size, *probabilities = v + V::size;
    const Head head(p);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    // The blocks with the most keys first.
    const int row0 = static_cast<int>(gridDim.y - 1 - blockIdx.y) * queries;
    const int end = p.causal ? min(row0 + queries, p.tokens) : p.tokens;
    const uint64_t seed = p.dropout ? p.seed.get() : 0;
    const auto rows_of = [&](int which, int row) { return p.qkv + head.packed(which, row); };
    Q::fetch(q, p.qkv + head.packed(0, row0), head.packed_step, p.tokens - row0, p.head_dim);
    K::fetch(k, rows_of(1, 0), head.packed_step, p.tokens, p.head_dim);
    commit_copies();
    Out out;
#pragma unroll
    for (int i = 0; i < Scores::rows; ++i) {
      top[i] = -INFINITY;
      sum[i] = 0;
    }
    float* own = probabilities + warp * 32 * p_leading;
    const int own_row0 = row0 + warp * 32;
    for (int col0 = 0; col0 < end; col0 += keys) {
      V::fetch(v, rows_of(2, col0), head.packed_step, p.tokens - col0, p.head_dim);
      commit_copies();
      wait_for_copies<1>();
      if (col0 == 0) Q::arrived(q);
      K::arrived(k);
      __syncthreads();
      const bool seen = !p.causal || col0 < own_row0 + 32;  // any row of this warp sees them
      Scores s;
      if (seen)
        Math::template multiply<32, keys, D, false, true>(s, q + warp * 32 * Q::leading, Q::leading,
                                                          k, K::leading);
      __syncthreads();
      if (const int next = col0 + keys; next < end)
        K::fetch(k, rows_of(1, next), head.packed_step, p.tokens - next, p.head_dim);
      commit_copies();
      if (seen) weigh(p, s, out, own, head.index, seed, own_row0, col0);
      wait_for_copies<1>();
      V::arrived(v);
      __syncthreads();
      if (seen)
        Math::template multiply<32, D, keys, false, false>(out, own, p_leading, v, V::leading);
      __syncthreads();
    }
    finish(p, head, out, own_row0);
  }

  __device__ void finish(const Flash& p, const Head& head, Out& out, int row0) {
#pragma unroll
    for (int i = 0; i < Scores::rows; ++i) {
      sum[i] = Math::over_row(sum[i], [](float a, float b) { return a + b; });
      const int row = row0 + Scores::row(i);
      if (Scores::col(0) == 0 && row < p.tokens)
        p.stats[head.index * p.tokens + row] = top[i] * p.scale + logf(sum[i]);
    }
    write_tile(out, p.out + head.at + row0 * head.step, head.step, p.tokens - row0, p.head_dim,
               [&](int i) { return 1 / sum[i]; });
  }
};

}  // namespace tally::train::cuda
