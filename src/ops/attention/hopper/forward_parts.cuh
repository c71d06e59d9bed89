// The parts that the forward kernels for heads of 64 and of 128 share.
#pragma once

#include "src/ops/attention/hopper/block.cuh"

namespace tally::train::cuda::hopper {

constexpr int warp_rows = store_rows;  // queries of a warp

// A block of queries of a head.
struct alignas(16) QueryBlock {
  int steps;   // blocks of keys; negative: there are no more items
  int column;  // column of Q in qkv, and of out
  int row;     // row of qkv and out
  int stats;   // the first one's index
};

// Heads whose K and V fit L2 together run together; of those the blocks that see most keys come
// first.
template <bool causal, int dim>
__device__ inline QueryBlock describe(const Forward& p, int* head, int item) {
  const int all = p.batch * p.heads, group = item / (p.group * p.blocks);
  const int first = group * p.group, heads = min(p.group, all - first);
  const int in_group = item - first * p.blocks, nth = in_group / heads;
  *head = first + in_group - nth * heads;
  const int block = p.blocks - 1 - nth, row = block * block_rows;
  return {causal ? block + 1 : p.blocks, *head % p.heads * dim, *head / p.heads * p.tokens + row,
          *head * p.tokens + row};
}

// Keeps the compiler from moving what these depend on behind what follows.
template <int count>
__device__ __forceinline__ void computed(uint32_t (&pairs)[count]) {
#pragma unroll
  for (uint32_t& pair : pairs) asm volatile("" : "+r"(pair)::"memory");
}

// The limit of a thread's sum of P over a step or half of one, above which P is taken relative to a
// larger score: P must fit T, and the output and its sum over many of them must fit float32.
template <typename T>
constexpr float most = 0x1p60F;
template <>
constexpr float most<__half> = 0x1p14F;

// (A NaN stays a NaN either way.)
template <typename T>
__device__ __forceinline__ bool too_large(const float (&sums)[2]) {
  return __any_sync(0xffffffffU, !(fmaxf(sums[0], sums[1]) <= most<T>));
}

// The description of a step: 0 or more, these bits, and 8 times its item's index in Shared::items.
enum Step { first_step = 1, last_step = 2, second_half = 4, item_step = 8 };

// The state of a thread's two rows: the base-2 exponent that others are relative to, and the sums.
struct Rows {
  float from[2], sum[2];
};

// A warp of the two warpgroups that compute. It has 16 queries.
template <bool dropout>
class WarpQueries {
 protected:
  __device__ WarpQueries(const Forward& p, int group)
      : p_(p),
        group_(group),
        warp_(static_cast<int>(threadIdx.x / 32 % 4)),
        lane_(static_cast<int>(threadIdx.x % 32)),
        scale_(p.scale * log2_e),
        seed_(dropout ? p.dropout.seed.get() : 0) {}

  // Draws dropout's mask of a step for the warp's queries, two lanes a query, half of the keys each:
  // a bit a key.
  __device__ __forceinline__ void draw(uint4 (&masks)[8][warp_rows], const QueryBlock item,
                                       int about) {
    keys_ = about & first_step ? item.steps - 1 : keys_ - 1;
    const int row = lane_ / 2, half = lane_ % 2;
    const int mask_row =
        item.stats + (about & second_half ? half_rows : 0) + warp_ * warp_rows + row;
    const int groups = p_.tokens / 8;
    uint32_t bits[2];
    kept_elements<8>(seed_, static_cast<uint64_t>(mask_row) * groups + 16 * keys_ + 8 * half,
                     p_.dropout.threshold, bits);
    __syncwarp();  // the step before has read its own
    reinterpret_cast<uint2*>(masks[group_ * 4 + warp_] + row)[half] = {bits[0], bits[1]};
    __syncwarp();
  }

  // Writes the statistics of this thread's two rows, the first of them to `to`; `sum`: over all
  // keys.
  __device__ __forceinline__ void write_stats(float* to, const Rows& rows,
                                              const float (&sum)[2]) const {
    if (lane_ % 4 != 0) return;
    constexpr float log_2 = 1 / log2_e;
    to[0] = (rows.from[0] + __log2f(sum[0])) * log_2;
    to[8] = (rows.from[1] + __log2f(sum[1])) * log_2;
  }

  const Forward& p_;
  const int group_, warp_, lane_;
  const float scale_;
  const uint64_t seed_;
  int keys_ = 0;  // the step's block of keys; only with dropout
};

}  // namespace tally::train::cuda::hopper
