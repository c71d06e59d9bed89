// Finds the places where the level of a series changes.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/statistics/descriptive.h"

namespace tally::statistics {

// The fewest values on either side of a change.
constexpr size_t kFewestInSegment = 3;

// Returns the indexes at which a new level begins, ascending. The series is divided into the
// segments that minimise ln(mean absolute distance from the segments' medians) + 4 ln(n) / n for
// each segment (the rule of asv, airspeed velocity). Takes time of n^2 ln(n).
std::vector<size_t> change_points(const Sample& series);

}  // namespace tally::statistics
