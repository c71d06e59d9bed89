// Judges whether one sample is better or worse than another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/statistics/descriptive.h"
#include "engine/statistics/intervals.h"

namespace tally::statistics {

constexpr double kLevel = 0.05;
// Below four values a side no p is below kLevel: 2 / C(6, 3) = 0.1.
constexpr size_t kFewestToCompare = 4;

enum class Verdict { improved, same, regressed, unclear };

struct Comparison {
  size_t n = 0, m = 0;               // values of the base and of the other
  bool positive = false;             // both medians are positive: else there is no ratio
  double base = 0, other = 0;        // medians; 0 without values
  double change = 0;                 // other / base - 1
  std::optional<Interval> interval;  // of the change, 95 %; only of at least four values a side
  double p = 1;                      // Mann-Whitney
  double adjusted_p = 1;             // Holm over all comparisons
  Verdict verdict = Verdict::unclear;
  // Unclear: about how many values a side would decide. 0: not known, or more than 1,000.
  size_t needed = 0;
};

// Everything but the verdict.
Comparison compare(const Sample& base, const Sample& other, uint64_t seed,
                   int resamples = kResamples);

// Sets adjusted_p, verdict and needed. `lower_is_better` has a value for each comparison.
//   regressed  the whole interval is beyond the threshold on the bad side, and adjusted_p < 0.05
//   improved   the same on the good side
//   same       the whole interval is within -+ the threshold
//   unclear    otherwise, and always with fewer than four values a side
void decide(std::vector<Comparison>& comparisons, const std::vector<bool>& lower_is_better,
            double threshold);

}  // namespace tally::statistics
