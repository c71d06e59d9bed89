#pragma once

#include <cstddef>

namespace tally {

// A step with more points, or with more workpackages, is a mistake in its file.
inline constexpr size_t most_points = 20'000'000;

}  // namespace tally
