#pragma once

#include <cstddef>

namespace tally {

// A step with more points, or with more workpackages, is a mistake in its file. So many take about
// 2 GB.
inline constexpr size_t most_points = 2'000'000;

}  // namespace tally
