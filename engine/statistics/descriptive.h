// Describes a sample: centre, spread, percentiles, outliers.
//
// A sample is one number per repeat of one measurement, in the order in which they were taken. All
// numbers are finite. The functions of this folder are pure.
#pragma once

#include <cstddef>
#include <vector>

namespace tally::statistics {

using Sample = std::vector<double>;

// All functions that return a number need at least one value.

// The mean by two passes: the second adds the mean of the rounding errors of the first.
double mean(const Sample& sample);
// n / sum(1 / x). NaN unless all values are positive. It is the right mean of rates over equal
// amounts of work.
double harmonic_mean(const Sample& sample);
double median(const Sample& sample);
// The standard deviation with divisor n - 1, by two passes. 0 for one value.
double standard_deviation(const Sample& sample);
// Standard deviation / |mean|. NaN for one value, and where the mean is 0.
double coefficient_of_variation(const Sample& sample);
// The median of |x - median|, without a scale factor.
double median_absolute_deviation(const Sample& sample);
// Interpolates linearly between order statistics, as NumPy's default does. 0 <= percent <= 100.
double percentile(const Sample& sample, double percent);

// hyperfine's rule: |x - median| / MAD > 14.826. A sample whose MAD is below 1e-9 of the median
// has no outliers, because any rounding error would be one.
struct Outliers {
  std::vector<size_t> indexes;
  // Whether the first value is one of them: caches were cold, clocks were low.
  bool first() const { return !indexes.empty() && indexes.front() == 0; }
};
Outliers outliers(const Sample& sample);

}  // namespace tally::statistics
