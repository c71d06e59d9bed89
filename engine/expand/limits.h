#pragma once

#include <algorithm>
#include <cstddef>

namespace tally {

// A step with more points, or with more workpackages, is a mistake in its file. So many take about
// 2 GB.
inline constexpr size_t most_points = 2'000'000;

// Messages name no larger number. Sums and products stop there.
inline constexpr size_t most_countable = 1'000'000'000'000'000;
inline size_t limited_sum(size_t a, size_t b) {
  return std::min(a + b, most_countable);
}
inline size_t limited_product(size_t a, size_t b) {
  return b != 0 && a > most_countable / b ? most_countable : a * b;
}

}  // namespace tally
