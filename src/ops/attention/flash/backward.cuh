// The backward pass of flash.h in two kernels: dK, dV and the blocks of dS; then dQ
// from those. D is the head's size rounded up.
#pragma once

#include "src/ops/attention/flash/blocks.cuh"

namespace tally::train::cuda {

// One block of 64 keys of one head: its dK and dV, and its blocks of dS. Each warp holds a quarter
// of every tile.
template <class Math, int D>
struct BackwardKeys {
  using Rows = Block<Math, key_block, D, 4>;
  static constexpr int leading = key_block + 4, half = key_block / 2;
  using Scores = typename Math::template Tile<half, half, false, true>;
  using Gradient = typename Math::template Tile<half, D / 2, true, false>;
  static constexpr size_t shared_bytes =
      sizeof(float) * (4 * Rows::size + 2 * key_block * leading + 2 * key_block);

  // Writes P M and dS of this warp's quarter of a block of queries and keys to shared memory, where
  // to_p has the mask before. `rows`: log2-sum-exp of the block's queries, then their delta.
  // `edge`: the block has pairs that do not see each other.
  template <bool edge>
  __device__ static void probabilities(const Flash& p, Scores& s, Scores& dp, const float* rows,
                                       float* to_p, float* to_ds, int row0, int col0) {
    const float scale = p.scale * log2_e;
#pragma unroll
    for (int i = 0; i < Scores::rows; ++i) {
      const int r = Scores::row(i), row = row0 + r;
      const float shift = -rows[r], delta = rows[key_block + r];
      const int visible = (row >= p.tokens ? 0 : p.causal ? row + 1 : p.tokens) - col0;
#pragma unroll
      for (int j = 0; j < Scores::cols; j += 2) {
        float x[2], change[2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const int c = Scores::col(j + k);
          const float mask = p.dropout ? to_p[r * leading + c] : 1;
          x[k] = exp2_fast(fmaf(s.value(i, j + k), scale, shift));
          change[k] = x[k] * p.scale * (dp.value(i, j + k) * mask - delta);
          x[k] *= mask;
          if (edge && c >= visible) x[k] = change[k] = 0;
        }
        const int c = Scores::col(j), next = Scores::col(j + 1);
        put<Math>(to_p + r * leading, c, next, Math::stored_number(x[0]),
                  Math::stored_number(x[1]));
        put<Math>(to_ds + r * leading, c, next, Math::stored(change[0]), Math::stored(change[1]));
      }
    }
  }

  // Writes dS of a block to the workspace.
  __device__ static void keep(const Flash& p, const float* ds, int query, int key) {
    float* tile = p.tiles + (blockIdx.x * p.tiles_a_head() + p.tile_index(query, key)) *
                                (key_block * key_block);
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < key_block * key_block / 4; i += flash_threads) {
      reinterpret_cast<float4*>(tile)[i] = *reinterpret_cast<const float4*>(
          ds + i / (key_block / 4) * leading + i % (key_block / 4) * 4);
    }
  }

  __device__ static void run(const Flash& p) {
    extern __shared__ float4 shared_memory[];
    auto* k = reinterpret_cast<float*>(shared_memory);
    float *v = k + Rows::size, *q = v + Rows::size, *dout = q + Rows::size;
    float *probability = dout + Rows::size, *ds = probability + key_block * leading;
    float* rows = ds + key_block * leading;  // log-sum-exp and delta of the queries
    const Head head(p);
    const int t = static_cast<int>(threadIdx.x), warp = t / 32;
    const int at_row = warp / 2 * half, at_col = warp % 2 * half, at_d = warp % 2 * (D / 2);
    const int key = static_cast<int>(blockIdx.y), col0 = key * key_block;
    const uint64_t seed = p.dropout ? p.seed.get() : 0;
    const auto fetch = [&](float* to, const float* from, int64_t step, int row) {
      Rows::fetch(to, from, step, p.tokens - row, p.head_dim);
    };
    fetch(k, p.qkv + head.packed(1, col0), head.packed_step, col0);
    fetch(v, p.qkv + head.packed(2, col0), head.packed_step, col0);
    Gradient dk, dv;
    for (int query = p.causal ? key : 0; query < p.blocks(); ++query) {
      const int row0 = query * key_block;
      fetch(q, p.qkv + head.packed(0, row0), head.packed_step, row0);
      fetch(dout, p.dout + head.at + row0 * head.step, head.step, row0);
      commit_copies();
      if (t < key_block && row0 + t < p.tokens) {
        rows[t] = p.stats[head.index * p.tokens + row0 + t] * log2_e;
        rows[key_block + t] = p.delta[head.index * p.tokens + row0 + t];
      }
      if (p.dropout) {
        mask_block<key_block, key_block, flash_threads>(
            p, seed, head.index, row0, col0, t, [&](int row, int col, float4 f) {
              *reinterpret_cast<float4*>(probability + row * leading + col) = f;
            });
      }
      wait_for_copies<0>();
      if (query == (p.causal ? key : 0)) {
        Rows::arrived(k);
        Rows::arrived(v);
      }
      Rows::arrived(q);
      Rows::arrived(dout);
      __syncthreads();
      {
        Scores s, dp;
        if (!(p.causal && query == key && at_col > at_row)) {  // masked pairs: zeros
          Math::template multiply<half, half, D, false, true>(
              s, q + at_row * Rows::leading, Rows::leading, k + at_col * Rows::leading,
              Rows::leading);
          Math::template multiply<half, half, D, false, true>(
              dp, dout + at_row * Rows::leading, Rows::leading, v + at_col * Rows::leading,
              Rows::leading);
        }
        float *own_p = probability + at_row * leading + at_col,
              *own_ds = ds + at_row * leading + at_col;
        if (row0 + key_block > p.tokens || col0 + key_block > p.tokens ||
            (p.causal && query == key)) {
          probabilities<true>(p, s, dp, rows + at_row, own_p, own_ds, row0 + at_row, col0 + at_col);
        } else {
          probabilities<false>(p, s, dp, rows + at_row, own_p, own_ds, row0 + at_row,
                               col0 + at_col);
        }
      }
      __syncthreads();
      Math::template multiply<half, D / 2, key_block, true, false>(
          dv, probability + at_row, leading, dout + at_d, Rows::leading);
      Math::template multiply<half, D / 2, key_block, true, false>(dk, ds + at_row, leading,
                                                                   q + at_d, Rows::leading);
      keep(p, ds, query, key);
      __syncthreads();
    }
    const int row = col0 + at_row, columns = p.head_dim - at_d;
    const auto one = [](int) { return 1.0F; };
    write_tile(dk, p.dqkv + head.packed(1, row) + at_d, head.packed_step, p.tokens - row, columns,
               one);
    write_tile(dv, p.dqkv + head.packed(2, row) + at_d, head.packed_step, p.tokens - row, columns,
               one);
  }
};

// A block of 64 queries of one head: its dQ from its blocks of dS.
template <class Math, int D>
struct BackwardQueries {
  using Rows = Block<Math, key_block, D, 8>;
  using Scores = Block<Math, key_block, key_block, 4>;
  static constexpr int half = key_block / 2, slot = Rows::size + Scores::size;
  static constexpr size_t shared_bytes = sizeof(float) * 2 * slot;

  __device__ static void run(const Flash& p) {
    extern __shared__ float4 shared_memory[];
    auto* slots = reinterpret_cast<float*>(shared_memory);
    const Head head(p);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int at_row = warp / 2 * half, at_d = warp % 2 * (D / 2);
    const int query = static_cast<int>(gridDim.y - 1 - blockIdx.y);
    const int keys = p.causal ? query + 1 : p.blocks();
    const float* tiles = p.tiles + (blockIdx.x * p.tiles_a_head() + p.tile_index(query, 0)) *
                                       (key_block * key_block);
    const auto fetch = [&](int key) {
      float *k = slots + key % 2 * slot, *ds = k + Rows::size;
      if (key < keys) {
        Rows::fetch(k, p.qkv + head.packed(1, key * key_block), head.packed_step,
                    p.tokens - key * key_block, p.head_dim);
        Scores::fetch(ds, tiles + key * (key_block * key_block), key_block, key_block, key_block);
      }
      commit_copies();
    };
    fetch(0);
    typename Math::template Tile<half, D / 2, false, false> dq;
    for (int key = 0; key < keys; ++key) {
      fetch(key + 1);
      wait_for_copies<1>();
      float *k = slots + key % 2 * slot, *ds = k + Rows::size;
      Rows::arrived(k);
      __syncthreads();
      Math::template multiply<half, D / 2, key_block, false, false>(
          dq, ds + at_row * Scores::leading, Scores::leading, k + at_d, Rows::leading);
      __syncthreads();
    }
    const int row = query * key_block + at_row;
    write_tile(dq, p.dqkv + head.packed(0, row) + at_d, head.packed_step, p.tokens - row,
               p.head_dim - at_d, [](int) { return 1.0F; });
  }
};

}  // namespace tally::train::cuda
