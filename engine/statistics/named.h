// The statistics that have names in workflows: `rate_median` is the median of the repeats' values of
// `rate`, and `reference: {of: median}` asks for the same number. Each is one row of a table.
#pragma once

#include <span>

#include "engine/statistics/descriptive.h"

namespace tally::statistics {

struct NamedStatistic {
  // A value has the unit of the sample's values, and is a whole number where they are. A ratio has
  // no unit. A count is a whole number without a unit.
  enum class Kind { value, ratio, count };

  const char* word;
  double (*of)(const Sample&);
  Kind kind = Kind::value;
  bool of_nothing = false;  // an empty sample has it, too
};

// n: how many repeats have a value. mad: the median absolute deviation. cv: standard deviation /
// |mean|. p05, p95: percentiles. ci_low, ci_high: the 95 % confidence interval of the median.
// outliers: how many values are outliers.
std::span<const NamedStatistic> named_statistics();
// Their words, as the schema has choices: "median|mad|cv".
const char* named_choices();

}  // namespace tally::statistics
