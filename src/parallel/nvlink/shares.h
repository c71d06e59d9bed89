// The division of a reduction by copy engines. Each rank sums one share of the elements; it gets
// the others' pieces of that share in memory that is smaller than the share, in rounds.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tally::train {

struct SharePiece {
  int64_t first = 0, count = 0;  // elements
};

// Elements of a rank's share of `count`: equal but for the last ranks', which may be shorter or
// empty. Shares start at multiples of 128 elements, so that vectors of 16 bytes do.
inline int64_t share_of(int64_t count, int ranks) {
  constexpr int64_t alignment = 128;
  return (count + ranks * alignment - 1) / (ranks * alignment) * alignment;
}

// Rounds until pieces of `slot` elements have covered a share.
inline int64_t rounds_of(int64_t share, int64_t slot) {
  return (share + slot - 1) / slot;
}

// The piece of rank `rank`'s share that a round sums; empty where the share has ended.
inline SharePiece piece_of(int64_t count, int64_t share, int64_t slot, int rank, int64_t round) {
  const int64_t first = std::min(rank * share + std::min(round * slot, share), count);
  const int64_t last = std::min({first + slot, (rank + 1) * share, count});
  return {first, last - first};
}

}  // namespace tally::train
