// The words for statistics of repeats and their uncertainty, as files have them. Names such as
// `rate_median` end with one (sample_names.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

// Statistics of repeats, as `reference: {of: ...}` and the ends of names have it. n: how many
// repeats have a value. mad: the median absolute deviation. cv: standard deviation / |mean|. p05,
// p95: percentiles. ci_low, ci_high: the 95 % confidence interval of the median. outliers: how many
// values are outliers.
enum class SampleStatistic { median, mad, cv, p05, p95, ci_low, ci_high, n, outliers };

// The words of each enumeration in its order, as the schema has choices. `none` has no word.
inline constexpr const char* kStatisticWords = "median|mean|min|max|harmonic";
inline constexpr const char* kUncertaintyWords = "ci|mad|range";
inline constexpr const char* kSampleWords = "median|mad|cv|p05|p95|ci_low|ci_high|n|outliers";

// `none` for any other word.
Statistic statistic_of(std::string_view word);
Uncertainty uncertainty_of(std::string_view word);
// "" for none.
std::string statistic_word(Statistic statistic);
std::string uncertainty_word(Uncertainty uncertainty);
// "" for unknown.
const char* better_word(Better better);
// The words of SampleStatistic.
const std::vector<std::string>& sample_words();

}  // namespace tally
