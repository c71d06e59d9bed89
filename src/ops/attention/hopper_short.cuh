// What the passes of hopper_short_kernels.h share: which sequence a block of threads takes next.
//
// A block of threads takes every gridDim.x'th head of a sequence, so that heads that lie side by
// side in memory are read at the same time. One warpgroup copies the next ones, whose barriers it
// waits for; the other two compute.
#pragma once

#include "src/ops/attention/hopper_block.cuh"
#include "src/ops/attention/hopper_short_kernels.h"

namespace tally::train::cuda::hopper {

// A head of a sequence.
struct alignas(16) ShortItem {
  int length;  // tokens; negative: there are no more items
  int row;     // of qkv, of the first token
  int column;  // of Q in qkv, and of out
  int place;   // of the first token's statistic
};

// The copying thread. `copy(item, slot)` fills Shared's slot and counts on full[slot], which
// expects `bytes`.
template <int slots, typename Shared, typename Copy>
__device__ void copy_items(const ShortSequences& p, Shared& s, int bytes, Copy copy) {
  const auto at = [](const auto& place) { return shared_address(&place); };
  const int items = p.count * p.heads;
  int n = 0;
  for (int i = static_cast<int>(blockIdx.x); i < items; i += static_cast<int>(gridDim.x)) {
    const int sequence = i / p.heads, head = i - sequence * p.heads;
    int row = sequence * p.tokens, length = p.tokens;
    if (p.cu_seqlens) {
      row = p.cu_seqlens[sequence];
      length = p.cu_seqlens[sequence + 1] - row;
    }
    if (length <= 0) continue;
    const int slot = n % slots, batch = row / p.tokens;
    barrier_wait(at(s.empty[slot]), (n / slots & 1) ^ 1);
    const ShortItem item{length, row, head * head_dim,
                         (batch * p.heads + head) * p.tokens + row - batch * p.tokens};
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
