// The part that the passes of short_kernels.h share: which sequence a block of threads takes next.
//
// A block of threads takes every gridDim.x'th head of a sequence, so that heads that lie side by
// side in memory are read at the same time. One warpgroup copies the next ones, whose barriers it
// waits for; the other two compute.
//
// Documents that follow each other share the 128 rows of a tile where they fit: of each eight, as
// many as fit into the first tile, and so on. A row sees the rows of its document alone.
#pragma once

#include "src/ops/attention/hopper/block.cuh"
#include "src/ops/attention/hopper/short_kernels.h"

namespace tally::train::cuda::hopper {

// A head of a sequence, or of documents that share a tile.
struct alignas(16) ShortItem {
  int length;     // tokens; negative: there are no more items
  int row;        // row of qkv of the first token
  int column;     // column of Q in qkv, and of out
  int statistic;  // index of the first token's statistic
  // The tile's row behind each document, a byte each; 255: there are no more.
  uint32_t ends[2];
  bool packed;  // several documents
};

constexpr int documents_together = 8;

// Rows of a tile that belong to one document.
struct Extent {
  int begin, end;
};

// The extent of the document that has `row`; the whole item for rows beyond it, whose results
// nobody reads.
__device__ inline Extent extent_of(const ShortItem& item, int row) {
  Extent e{0, item.length};
  if (!item.packed || row >= item.length) return e;
#pragma unroll
  for (int k = 0; k < documents_together; ++k) {
    const int end = static_cast<int>(item.ends[k / 4] >> (k % 4 * 8) & 0xff);
    if (end <= row) {
      e.begin = max(e.begin, end);
    } else {
      e.end = min(e.end, end);
    }
  }
  return e;
}

// Dropout's mask of a query's 128 keys lies from the document's first row on: its bits for the rows
// 64 half to 64 half + 63 of the tile. `low` and `high`: those of the document's keys 0 to 63 and
// 64 to 127.
__device__ inline uint64_t kept_of_tile(uint64_t low, uint64_t high, int begin, int half) {
  if (half == 0) return begin < 64 ? low << begin : 0;
  if (begin >= 64) return begin < 128 ? low << (begin - 64) : 0;
  return begin == 0 ? high : high << begin | low >> (64 - begin);
}

// Dropout's mask for 64 keys of a query, from key 64 half of its document on.
__device__ inline uint64_t kept_of_document(uint64_t seed, const ShortSequences& p, int statistic,
                                            int half) {
  const uint64_t group =
      static_cast<uint64_t>(statistic) * static_cast<uint32_t>(p.mask_groups) + 8 * half;
  uint32_t bits[2];
  kept_elements<8>(seed, group, p.dropout.threshold, bits);
  return uint64_t{bits[1]} << 32 | bits[0];
}

// Whether `sequence` is the first document of a tile; then its rows, and those of all that share
// the tile.
__device__ inline bool first_of_tile(const ShortSequences& p, int sequence, ShortItem* item) {
  const int first = sequence / documents_together * documents_together, mine = sequence - first;
  int offset[documents_together + 1];
#pragma unroll
  for (int k = 0; k <= documents_together; ++k)
    offset[k] = __ldg(p.cu_seqlens + min(first + k, p.count));
  int start = 0, row = offset[0], row_end = (row / p.tokens + 1) * p.tokens;
  bool found = false;
#pragma unroll
  for (int k = 1; k <= documents_together; ++k) {
    const int next = min(k + 1, documents_together);
    // Whether the tile ends in front of document k.
    const bool closes =
        k == documents_together || offset[next] - row > block_rows || offset[next] > row_end;
    if (!closes) continue;
    if (start == mine) {
      found = true;
      item->row = row;
      item->length = offset[k] - row;
      item->packed = k - start > 1;
      item->ends[0] = item->ends[1] = 0xffffffffU;
#pragma unroll
      for (int d = 0; d < documents_together; ++d)
        if (d >= start && d < k)
          item->ends[d / 4] ^= static_cast<uint32_t>(0xff ^ (offset[d + 1] - row)) << (d % 4 * 8);
    }
    start = k;
    row = offset[k];
    row_end = (row / p.tokens + 1) * p.tokens;
  }
  return found && item->length > 0;
}

// The copying thread. `copy(item, slot)` fills Shared's slot and counts on full[slot], which
// expects `bytes`.
template <int slots, typename Shared, typename Copy>
__device__ void copy_items(const ShortSequences& p, Shared& s, int bytes, Copy copy) {
  const auto at = [](const auto& object) { return shared_address(&object); };
  const int items = p.count * p.heads;
  int n = 0;
  for (int i = static_cast<int>(blockIdx.x); i < items; i += static_cast<int>(gridDim.x)) {
    const int sequence = i / p.heads, head = i - sequence * p.heads;
    ShortItem item{};
    item.row = sequence * p.tokens;
    item.length = p.tokens;
    if (p.cu_seqlens && !first_of_tile(p, sequence, &item)) continue;
    const int slot = n % slots, batch = item.row / p.tokens;
    barrier_wait(at(s.empty[slot]), (n / slots & 1) ^ 1);
    item.column = head * head_dim;
    item.statistic = (batch * p.heads + head) * p.tokens + item.row - batch * p.tokens;
    s.items[slot] = item;
    barrier_expect(at(s.full[slot]), bytes);
    copy(item, slot);
    ++n;
  }
  const int slot = n % slots;
  barrier_wait(at(s.empty[slot]), (n / slots & 1) ^ 1);
  s.items[slot].length = -1;
  barrier_arrive(at(s.full[slot]));
}

template <int slots, typename Shared>
__device__ void init_barriers(Shared& s) {
  if (shared_address(&s) % alignof(Shared) != 0) __trap();
  for (int i = 0; i < slots; ++i) {
    barrier_init(shared_address(s.full + i), 1);
    barrier_init(shared_address(s.empty + i), 8);  // warps
  }
}

}  // namespace tally::train::cuda::hopper
