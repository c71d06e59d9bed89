// Whether two samples differ: the Mann-Whitney U test, and Holm's correction for several tests.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/statistics/descriptive.h"

namespace tally::statistics {

// The largest sample for which the distribution of U is counted, not approximated.
constexpr size_t kExactSamples = 20;

struct RankTest {
  double u = 0;  // pairs in which the value of `a` is larger; a tie is half a pair
  double p = 1;  // two-sided
  bool exact = false;
};

// Both samples have at least one value. With at most 20 values each, p is exact without ties and
// conservative with ties: U is moved to the next whole number towards the middle. Otherwise p is
// the normal approximation with corrections for ties and continuity.
RankTest mann_whitney(const Sample& a, const Sample& b);

// The smallest two-sided p that n against n values can have: 2 / C(2n, n).
double smallest_p(size_t n);
// The smallest n at which smallest_p(n) is below `level`.
size_t samples_needed(double level);

// Holm's step-down adjustment: adjusted[i] < level for all i keeps the probability of any false
// positive below level. Same order as `p`.
std::vector<double> holm(const std::vector<double>& p);

}  // namespace tally::statistics
