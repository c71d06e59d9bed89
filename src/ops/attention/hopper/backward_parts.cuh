// The parts that the backward kernels for heads of 64 and of 128 share.
#pragma once

#include "src/ops/attention/hopper/block.cuh"

namespace tally::train::cuda::hopper {

// The number of heads of Q that share a head of K and V: head h of K and V has those from h times
// as many on.
template <bool grouped>
__device__ inline int heads_a_key(const Backward& p) {
  return grouped ? p.heads / p.kv_heads : 1;
}
template <bool grouped>
__device__ inline int kv_heads(const Backward& p) {
  return grouped ? p.kv_heads : p.heads;  // no register for what is known twice
}

__device__ inline void add4(float* to, const float* x) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x[0]),
               "f"(x[1]), "f"(x[2]), "f"(x[3])
               : "memory");
}

// Dropout's mask of each warp's 16 keys by a turn's queries: a bit a key.
template <int queries>
using KeptKeys = uint16_t[8][queries];

// A thread's work between the GEMMs of a turn, for the 64 keys of its warpgroup and the turn's
// queries.
template <typename T, bool dropout, int queries>
class TurnOperands {
 protected:
  __device__ TurnOperands(const Backward& p, KeptKeys<queries>& kept, int group)
      : p_(p),
        kept_(kept),
        group_(group),
        thread_(static_cast<int>(threadIdx.x % warpgroup)),
        seed_(dropout ? p.dropout.seed.get() : 0) {}

  // Computes P from scores. On the diagonal it is 0 where a query does not see a key; `ahead`: the
  // first query's offset from the first key.
  __device__ void probabilities(float (&x)[queries / 2], const float* stats, bool diagonal,
                                int ahead) {
    const int column = thread_ % 4 * 2,
              key = group_ * half_rows + thread_ / 32 * 16 + thread_ % 32 / 4;
    const float scale = p_.scale * log2_e;
#pragma unroll
    for (int j = 0; j < queries / 8; ++j) {
      const float2 m = *reinterpret_cast<const float2*>(stats + 8 * j + column);
      x[4 * j] = exp2_fast(fmaf(x[4 * j], scale, -m.x));
      x[4 * j + 1] = exp2_fast(fmaf(x[4 * j + 1], scale, -m.y));
      x[4 * j + 2] = exp2_fast(fmaf(x[4 * j + 2], scale, -m.x));
      x[4 * j + 3] = exp2_fast(fmaf(x[4 * j + 3], scale, -m.y));
    }
    if (!diagonal) return;
#pragma unroll
    for (int i = 0; i < queries / 2; ++i) {
      const int query = ahead + i / 4 * 8 + column + i % 2;
      if (query < key + i % 4 / 2 * 8) x[i] = 0;
    }
  }

  // Draws dropout's mask for the warp's 16 keys, for turn q of a head's queries and a block of keys.
  __device__ void draw(int head, int q, int keys) {
    constexpr int each = queries / 32;  // queries of a lane
    const int lane = thread_ % 32, warp = group_ * 4 + thread_ / 32;
    const int mask_row = head * p_.tokens + q * queries + each * lane, groups = p_.tokens / 8;
    const int group = keys * (block_rows / 8) + 2 * warp;
    uint32_t pairs[each];
#pragma unroll
    for (int i = 0; i < each; ++i) {
      uint32_t bits[1];
      kept_elements<2>(seed_, static_cast<uint64_t>(mask_row + i) * groups + group,
                       p_.dropout.threshold, bits);
      pairs[i] = bits[0];
    }
    __syncwarp();  // the turn before has read its own
    if constexpr (each == 4) {
      reinterpret_cast<uint2*>(kept_[warp])[lane] = {pairs[0] | pairs[1] << 16,
                                                     pairs[2] | pairs[3] << 16};
    } else {
      static_assert(each == 2);
      reinterpret_cast<uint32_t*>(kept_[warp])[lane] = pairs[0] | pairs[1] << 16;
    }
    __syncwarp();
  }

  // Converts P M and dS = P (M dP - delta) to 16 bits.
  __device__ void to_operands(const float (&x)[queries / 2], const float (&dp)[queries / 2],
                              const float* delta, uint32_t (&probability)[queries / 4],
                              uint32_t (&ds)[queries / 4]) {
    const int column = static_cast<int>(threadIdx.x % 4 * 2), bit = thread_ % 32 / 4;
#pragma unroll
    for (int j = 0; j < queries / 8; ++j) {
      const float2 d = *reinterpret_cast<const float2*>(delta + 8 * j + column);
      uint32_t kept = 0;  // bits of two queries, each of keys 0 to 7 and 8 to 15
      if (dropout) {
        kept =
            *reinterpret_cast<const uint32_t*>(kept_[group_ * 4 + thread_ / 32] + 8 * j + column) >>
            bit;
      }
#pragma unroll
      for (int i = 4 * j; i < 4 * j + 4; i += 2) {
        if (dropout) {
          const int key = i % 4 * 4;  // 0 or 8
          const float first = kept >> key & 1 ? p_.dropout.keep_scale : 0,
                      second = kept >> (16 + key) & 1 ? p_.dropout.keep_scale : 0;
          probability[i / 2] = packed<T>(x[i] * first, x[i + 1] * second);
          ds[i / 2] =
              packed<T>(x[i] * fmaf(dp[i], first, -d.x), x[i + 1] * fmaf(dp[i + 1], second, -d.y));
        } else {
          probability[i / 2] = packed<T>(x[i], x[i + 1]);
          ds[i / 2] = packed<T>(x[i] * (dp[i] - d.x), x[i + 1] * (dp[i + 1] - d.y));
        }
      }
    }
  }

  __device__ void add_queries(float* to, const float (&dq)[32]) const {
#pragma unroll
    for (int j = 0; j < 8; ++j) add4(to + (j * warpgroup + thread_) * 4, dq + 4 * j);
  }

  const Backward& p_;
  KeptKeys<queries>& kept_;
  const int group_, thread_;
  const uint64_t seed_;
};

}  // namespace tally::train::cuda::hopper
