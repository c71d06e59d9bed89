// Confidence intervals that assume no distribution.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/statistics/descriptive.h"

namespace tally::statistics {

constexpr double kConfidence = 0.95;
// The fewest values with an interval of the median at 95 %.
constexpr size_t kFewestForMedian = 6;
constexpr int kResamples = 10000;

struct Interval {
  double low = 0, high = 0;
};

struct MedianInterval {
  Interval interval;
  // The probability that it contains the median of a continuous distribution: at least 0.95, or
  // less if it is the range of fewer than six values. Tests compare it with the theory.
  double confidence = 0;
  bool is_range = false;
};

// The rank k, from 1, for which the k-th smallest and the k-th largest of n values enclose the
// median with a probability of at least 0.95: the largest k with P(B <= k - 1) <= 0.025, B binomial
// with n and 1/2. 0 if there is none (n < 6). Exact for n <= 1000; beyond, the normal approximation
// floor((n - z sqrt(n)) / 2).
size_t median_rank(size_t n);
// 1 - 2 P(B <= k - 1).
double rank_confidence(size_t n, size_t k);

// The interval of the median by order statistics. Exact for any continuous distribution.
MedianInterval median_interval(const Sample& sample);

// The interval of the mean by the percentile bootstrap. It is too narrow for few values: docs of
// the program say by how much.
Interval mean_interval(const Sample& sample, uint64_t seed, int resamples = kResamples);

// The interval of median(b) / median(a) by the percentile bootstrap. Medians are positive.
Interval median_ratio_interval(const Sample& a, const Sample& b, uint64_t seed,
                               int resamples = kResamples);

}  // namespace tally::statistics
