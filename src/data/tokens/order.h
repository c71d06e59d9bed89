// The order in which epochs go through a list.
#pragma once

#include <cstdint>

#include "src/data/tokens/permutation.h"

namespace tally::train {

// Maps sample `index`, which counts through all epochs, to an element of the list: in the list's
// order, or in an order of its own for every epoch.
class EpochOrder {
 public:
  EpochOrder(int64_t size, bool shuffle, uint64_t seed)
      : size_(size), shuffle_(shuffle), seed_(seed) {}

  int64_t size() const { return size_; }
  int64_t operator()(int64_t index) const {
    const int64_t at = index % size_;
    if (!shuffle_) return at;
    const Permutation order(static_cast<uint64_t>(size_),
                            mix64(mix64(seed_) ^ mix64(static_cast<uint64_t>(index / size_))));
    return static_cast<int64_t>(order(static_cast<uint64_t>(at)));
  }

 private:
  int64_t size_;
  bool shuffle_;
  uint64_t seed_;
};

}  // namespace tally::train
