// Random draws that depend on their position alone: on a seed, a purpose and a number, as that of a
// sample. The same on every machine, for any number of processes and threads.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "src/data/tokens/permutation.h"
#include "src/device/philox.h"

namespace tally::train {

// The purposes of random numbers: each has its own stream, so that no two parts of the data depend
// on each other.
enum class Draw : uint64_t { sentence_pairs = 1, masks = 2, shards = 3, rows = 4, synthetic = 5 };

// The words of Philox 4x32 with ten rounds, key mix64(seed) ^ purpose, stream `number`, counters 0,
// 1, ..., one after the other.
class PhiloxDraws {
 public:
  PhiloxDraws(uint64_t seed, Draw purpose, uint64_t number)
      : key_(mix64(seed) ^ static_cast<uint64_t>(purpose)), stream_(number) {}

  uint32_t next() {
    const auto word = static_cast<unsigned>(drawn_ % 4);
    if (word == 0) words_ = philox(key_, drawn_ / 4, stream_);
    ++drawn_;
    return words_.word[word];
  }
  // Uniform in [0, 1), a multiple of 2^-32.
  double uniform() { return next() * 0x1p-32; }
  // Uniform in 0 ... bound - 1, but for a bias of bound / 2^32. 0 < bound <= 2^32.
  uint64_t below(uint64_t bound) { return (next() * bound) >> 32; }
  // Uniform in low ... high.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low + 1)));
  }
  // Fisher and Yates, from the last element to the second.
  template <typename T>
  void shuffle(std::vector<T>* items) {
    for (size_t i = items->size(); i > 1; --i) std::swap((*items)[i - 1], (*items)[below(i)]);
  }

 private:
  uint64_t key_, stream_, drawn_ = 0;
  Philox4 words_{};
};

}  // namespace tally::train
