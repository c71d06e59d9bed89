// The plan counts in double: bytes of one run pass 2^63 in layouts that it has to refuse.
#pragma once

#include <cstdint>

namespace tally::train {

constexpr double mib = 1 << 20, gib = 1 << 30, gb = 1e9;

constexpr double real(int64_t n) {
  return static_cast<double>(n);
}

}  // namespace tally::train
