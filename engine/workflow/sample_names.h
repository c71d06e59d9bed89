// Names of statistics over repeats: `rate_median` is the median of `rate`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workflow/statistic_words.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct SampleName {
  std::string base;  // a pattern, or one of JUBE's statistics of a pattern (`rate_avg`)
  SampleStatistic statistic;
};

// The suffixes with their underscore, in the order of the enumeration.
const std::vector<std::string>& sample_suffixes();
// JUBE's statistics over the matches of a pattern, with their underscore.
const std::vector<std::string>& match_suffixes();

// Whether `name` is a pattern of the benchmark, one of JUBE's statistics of it, or a number of its
// jobs.
bool is_match_value(const Benchmark& benchmark, const std::string& name);
// Whether `name` is the pattern's, or that of one of JUBE's statistics of it: rate, rate_avg.
bool is_match_value_of(std::string_view name, std::string_view pattern);
// Whether `name` is one of these, or a statistic of one over repeats: rate_median, rate_avg_median.
bool is_value_of(std::string_view name, std::string_view pattern);
// Whether the statistic with this suffix has the unit of its pattern. Counts, sums of squares and
// ratios have not.
bool has_unit(std::string_view suffix);
// The pattern of which `name` is a value, one of JUBE's statistics or one over repeats. Otherwise
// the name itself.
std::string pattern_of(const Benchmark& benchmark, const std::string& name);
// Nothing in JUBE's own files, and where the input has a parameter or pattern of that name.
std::optional<SampleName> sample_name(const Benchmark& benchmark, const std::string& name);

}  // namespace tally
