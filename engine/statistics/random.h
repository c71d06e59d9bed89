// Random numbers that are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tally::statistics {

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). The
// standard library's distributions are not used, because they differ between libraries.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // A whole number below `count`, which is below 2^32. The bias is below 2^-32 * count.
  size_t below(size_t count) {
    return static_cast<size_t>(((next() >> 32) * static_cast<uint64_t>(count)) >> 32);
  }
  // A number in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace tally::statistics
