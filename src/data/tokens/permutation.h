// Shuffled orders that are the same on every machine: the standard library's are not.
#pragma once

#include <cstdint>

#include "src/device/split_mix.h"

namespace tally::train {

// A number below `bound`, uniform but for a bias of bound / 2^64 (Lemire 2019).
constexpr uint64_t scale_below(uint64_t random, uint64_t bound) {
  return static_cast<uint64_t>((static_cast<__uint128_t>(random) * bound) >> 64);
}

class RandomSequence {
 public:
  explicit RandomSequence(uint64_t seed) : state_(seed) {}
  uint64_t next() { return mix64(state_++ * split_mix_gamma); }
  uint64_t below(uint64_t bound) { return scale_below(next(), bound); }

 private:
  uint64_t state_;
};

// A pseudo-random order of 0 ... size - 1 in constant memory: a Feistel network of four rounds over
// the next power of four, walked until the result is in range (Black and Rogaway 2002, "cycle
// walking").
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t seed);
  uint64_t operator()(uint64_t index) const;
  uint64_t size() const { return size_; }

 private:
  uint64_t size_, seed_;
  int half_bits_ = 1;
};

}  // namespace tally::train
