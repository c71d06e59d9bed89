// The kernels of attention_one_pass.h, over the arithmetic of attention_tiles.cuh. D is the head's
// size rounded up; columns beyond head_dim and rows beyond the tokens are zero in shared memory.
#pragma once

#include "src/ops/cuda/attention_one_pass_kernels.h"
#include "src/ops/cuda/attention_tiles.cuh"
#include "src/ops/cuda/common.cuh"

namespace tally::train::cuda {

constexpr int one_pass_threads = 128;  // four warps

// Copies 16 or 4 bytes to shared memory in the background, zeros unless `valid`.
__device__ inline void copy16(uint32_t to, const float* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(valid ? 16 : 0));
}
__device__ inline void copy4(uint32_t to, const float* from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
               "r"(valid ? 4 : 0));
}
__device__ inline uint32_t shared_address(const float* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;");
}
// Until at most `pending` of this thread's groups are on their way.
template <int pending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// 2^x, with an error of two units in the last place.
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
constexpr float log2_e = 1.4426950408889634F;

// R x D values of a block in shared memory, rows D + pad apart. Each thread has one group of four
// columns.
template <class Math, int R, int D, int pad>
struct Block {
  static constexpr int leading = D + pad, size = R * leading;
  static constexpr int groups = D / 4, step = one_pass_threads / groups;  // rows of one pass

  // Begins to copy rows of `row_step` elements, zeros from `rows` and `columns` on.
  __device__ static void fetch(float* to, const float* from, int64_t row_step, int rows,
                               int columns) {
    const int t = static_cast<int>(threadIdx.x), r = t / groups, c = t % groups * 4;
    uint32_t place = shared_address(to + r * leading + c);
    from += r * row_step + c;
    if (columns % 4 == 0) {
      if (c >= columns) rows = 0;
#pragma unroll
      for (int i = 0; i < R; i += step) {
        copy16(place + i * leading * 4, from, r + i < rows);
        from += step * row_step;
      }
    } else {
#pragma unroll 1
      for (int i = 0; i < R; i += step) {
        for (int k = 0; k < 4; ++k)
          copy4(place + (i * leading + k) * 4, from + k, r + i < rows && c + k < columns);
        from += step * row_step;
      }
    }
  }
  // After wait_for_copies(): gives what this thread fetched the form that products need. The other
  // threads' share is there after the next __syncthreads().
  __device__ static void arrived(float* at) {
    if (Math::keeps) return;
    const int t = static_cast<int>(threadIdx.x);
    at += t / groups * leading + t % groups * 4;
#pragma unroll
    for (int i = 0; i < R; i += step) {
      auto* x = reinterpret_cast<float4*>(at + i * leading);
      const float4 v = *x;
      *x = {Math::stored(v.x), Math::stored(v.y), Math::stored(v.z), Math::stored(v.w)};
    }
  }
};

// Two neighbouring values of a row in shared memory.
template <class Math>
__device__ inline void put(float* row, int col, int next_col, float x, float y) {
  if (Math::neighbours) {
    *reinterpret_cast<float2*>(row + col) = {x, y};
  } else {
    row[col] = x;
    row[next_col] = y;
  }
}

// Where one head's rows lie in qkv and dqkv (which: 0 Q, 1 K, 2 V) and in out and dout.
struct Head {
  int64_t index, packed_step, step, packed_at, at;
  __device__ Head(const OnePass& p) : index(p.first_head + blockIdx.y) {
    const int64_t b = index / p.heads, h = index % p.heads;
    step = int64_t{p.heads} * p.head_dim;
    packed_step = 3 * step;
    packed_at = b * p.tokens * packed_step + h * p.head_dim;
    at = b * p.tokens * step + h * p.head_dim;
  }
  __device__ int64_t packed(int which, int64_t row) const {
    return packed_at + which * step + row * packed_step;
  }
};

// Dropout's factors of elements i .. i + 3. Aligned: i is a multiple of 4, one draw serves all.
template <bool aligned>
__device__ inline float4 four_factors(const OnePass& p, uint64_t seed, uint64_t i) {
  if constexpr (aligned) {
    const Philox4 random = philox(seed, i >> 2);
    const auto factor = [&](uint32_t word) { return word >= p.threshold ? p.keep_scale : 0.0F; };
    return {factor(random.word[0]), factor(random.word[1]), factor(random.word[2]),
            factor(random.word[3])};
  } else {
    float x[4];
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
      const float factor = dropout_keeps(seed, i + k, p.threshold) ? p.keep_scale : 0.0F;
      x[0] = k == 0 ? factor : x[0];
      x[1] = k == 1 ? factor : x[1];
      x[2] = k == 2 ? factor : x[2];
      x[3] = k == 3 ? factor : x[3];
    }
    return {x[0], x[1], x[2], x[3]};
  }
}

// Calls f(row, col, factors) for every four columns of a block of R x C elements of the mask that
// begins at (row0, col0), rows shared among `threads` threads, this one number t. A loop of its
// own: random numbers drawn where they are used, in unrolled code, would not fit the instruction
// cache.
template <int R, int C, int threads, bool aligned, class F>
__device__ inline void mask_rows(const OnePass& p, uint64_t seed, int64_t head, int row0, int col0,
                                 int t, F&& f) {
  constexpr int groups = C / 4, step = threads / groups;
  const int r = t / groups, c = t % groups * 4;
  auto element = static_cast<uint64_t>((head * p.tokens + row0 + r) * p.tokens + col0 + c);
#pragma unroll 1
  for (int row = r; row < R; row += step) {
    f(row, c, four_factors<aligned>(p, seed, element));
    element += static_cast<uint64_t>(step) * static_cast<uint64_t>(p.tokens);
  }
}
template <int R, int C, int threads, class F>
__device__ inline void mask_block(const OnePass& p, uint64_t seed, int64_t head, int row0, int col0,
                                  int t, F&& f) {
  if (p.tokens % 4 == 0) {
    mask_rows<R, C, threads, true>(p, seed, head, row0, col0, t, f);
  } else {
    mask_rows<R, C, threads, false>(p, seed, head, row0, col0, t, f);
  }
}

// Writes a tile's values, `factor(i)` times row i's, to rows of `step` elements; `to` is where its
// element (0, 0) goes.
template <class Tile, class Factor>
__device__ inline void write_tile(Tile& tile, float* to, int64_t step, int rows, int columns,
                                  Factor&& factor) {
#pragma unroll
  for (int i = 0; i < Tile::rows; ++i) {
    const int r = Tile::row(i);
    if (r >= rows) continue;
#pragma unroll
    for (int j = 0; j < Tile::cols; j += 2) {  // neighbours
      const int c = Tile::col(j);
      float* at = to + r * step + c;
      const float x = tile.value(i, j) * factor(i), y = tile.value(i, j + 1) * factor(i);
      if (columns % 2 == 0) {
        if (c < columns) *reinterpret_cast<float2*>(at) = {x, y};
      } else {
        if (c < columns) at[0] = x;
        if (c + 1 < columns) at[1] = y;
      }
    }
  }
}

// A block of 128 queries of one head, 32 a warp.
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

  // Of each row so far: the highest score, and the sum of this lane's columns.
  float top[Scores::rows], sum[Scores::rows];

  // Scores to probabilities against the new maximum, in shared memory; `out` and the sums follow.
  // With `edge`, columns that a row does not see are among them.
  template <bool edge>
  __device__ void softmax(const OnePass& p, Scores& s, Out& out, float* to, int row0, int col0) {
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
      // Every row sees a column of the first block, so that this is a number from then on.
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

  // This warp's scores of one block to P M in shared memory.
  __device__ void weigh(const OnePass& p, Scores& s, Out& out, float* own, int64_t head,
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

  __device__ void run(const OnePass& p) {
    extern __shared__ float4 shared_memory[];
    auto* q = reinterpret_cast<float*>(shared_memory);
    float *k = q + Q::size, *v = k + K::size, *probabilities = v + V::size;
    const Head head(p);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    // The blocks with the most keys first, lest one of them be left alone at the end.
    const int row0 = static_cast<int>(gridDim.x - 1 - blockIdx.x) * queries;
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
      const bool seen = !p.causal || col0 < own_row0 + 32;  // by any row of this warp
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

  __device__ void finish(const OnePass& p, const Head& head, Out& out, int row0) {
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

// A block of 64 keys of one head: its dK and dV, and its blocks of dS. Warps hold quarters of every
// tile.
template <class Math, int D>
struct BackwardKeys {
  using Rows = Block<Math, key_block, D, 4>;
  static constexpr int leading = key_block + 4, half = key_block / 2;
  using Scores = typename Math::template Tile<half, half, false, true>;
  using Gradient = typename Math::template Tile<half, D / 2, true, false>;
  static constexpr size_t shared_bytes =
      sizeof(float) * (4 * Rows::size + 2 * key_block * leading + 2 * key_block);

  // P M and dS of this warp's quarter of a block of queries and keys, to shared memory, where to_p
  // has the mask before. `rows`: log2-sum-exp of the block's queries, then their delta. With
  // `edge`, pairs that do not see each other are among them.
  template <bool edge>
  __device__ static void probabilities(const OnePass& p, Scores& s, Scores& dp, const float* rows,
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

  __device__ static void run(const OnePass& p) {
    extern __shared__ float4 shared_memory[];
    auto* k = reinterpret_cast<float*>(shared_memory);
    float *v = k + Rows::size, *q = v + Rows::size, *dout = q + Rows::size;
    float *probability = dout + Rows::size, *ds = probability + key_block * leading;
    float* rows = ds + key_block * leading;  // log-sum-exp and delta of the queries
    const Head head(p);
    const int t = static_cast<int>(threadIdx.x), warp = t / 32;
    const int at_row = warp / 2 * half, at_col = warp % 2 * half, at_d = warp % 2 * (D / 2);
    const int key = static_cast<int>(blockIdx.x), col0 = key * key_block;
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
        mask_block<key_block, key_block, one_pass_threads>(
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
        if (!(p.causal && query == key && at_col > at_row)) {  // else none sees the other: zeros
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
      float* tile = p.tiles + (blockIdx.y * p.tiles_a_head() + p.tile_index(query, key)) *
                                  (key_block * key_block);
#pragma unroll 4
      for (int i = t; i < key_block * key_block / 4; i += one_pass_threads) {
        reinterpret_cast<float4*>(tile)[i] = *reinterpret_cast<const float4*>(
            ds + i / (key_block / 4) * leading + i % (key_block / 4) * 4);
      }
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
  static constexpr int half = key_block / 2, stage = Rows::size + Scores::size;
  static constexpr size_t shared_bytes = sizeof(float) * 2 * stage;

  __device__ static void run(const OnePass& p) {
    extern __shared__ float4 shared_memory[];
    auto* stages = reinterpret_cast<float*>(shared_memory);
    const Head head(p);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int at_row = warp / 2 * half, at_d = warp % 2 * (D / 2);
    const int query = static_cast<int>(gridDim.x - 1 - blockIdx.x);
    const int keys = p.causal ? query + 1 : p.blocks();
    const float* tiles = p.tiles + (blockIdx.y * p.tiles_a_head() + p.tile_index(query, 0)) *
                                       (key_block * key_block);
    const auto fetch = [&](int key) {
      float *k = stages + key % 2 * stage, *ds = k + Rows::size;
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
      float *k = stages + key % 2 * stage, *ds = k + Rows::size;
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

template <class Math, int D>
__global__ void __launch_bounds__(one_pass_threads) one_pass_forward_kernel(OnePass p) {
  Forward<Math, D> block;
  block.run(p);
}
template <class Math, int D>
__global__ void __launch_bounds__(one_pass_threads) one_pass_keys_kernel(OnePass p) {
  BackwardKeys<Math, D>::run(p);
}
template <class Math, int D>
__global__ void __launch_bounds__(one_pass_threads) one_pass_queries_kernel(OnePass p) {
  BackwardQueries<Math, D>::run(p);
}

template <class Math, int D>
void launch_one_pass(void (*kernel)(OnePass), size_t shared, int blocks, const OnePass& p,
                     int64_t count, cudaStream_t stream) {
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)));
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(count));
  kernel<<<grid, one_pass_threads, shared, stream>>>(p);
  CUDA_LAUNCHED();
}

template <class Math, int D>
OnePassKernels one_pass_kernels() {
  OnePassKernels kernels;
  kernels.forward = [](const OnePass& p, int64_t count, cudaStream_t stream) {
    using F = Forward<Math, D>;
    launch_one_pass<Math, D>(one_pass_forward_kernel<Math, D>, F::shared_bytes,
                             static_cast<int>(divide_up(p.tokens, F::queries)), p, count, stream);
  };
  kernels.backward = [](const OnePass& p, int64_t count, cudaStream_t stream) {
    launch_one_pass<Math, D>(one_pass_keys_kernel<Math, D>, BackwardKeys<Math, D>::shared_bytes,
                             p.blocks(), p, count, stream);
    launch_one_pass<Math, D>(one_pass_queries_kernel<Math, D>,
                             BackwardQueries<Math, D>::shared_bytes, p.blocks(), p, count, stream);
  };
  kernels.shared_bytes = Forward<Math, D>::shared_bytes > BackwardKeys<Math, D>::shared_bytes
                             ? Forward<Math, D>::shared_bytes
                             : BackwardKeys<Math, D>::shared_bytes;
  return kernels;
}

}  // namespace tally::train::cuda
