// The names of values that tables show beside parameters and patterns, and the words for
// statistics.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/statistics/named.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The words for the uncertainty of a statistic of repeats, in the enumeration's order, as the schema
// has choices. `none` has no word.
inline constexpr const char* kUncertaintyWords = "ci|mad|range";

// Null for any other word.
const statistics::NamedStatistic* statistic_of(std::string_view word);
// `none` for any other word.
Uncertainty uncertainty_of(std::string_view word);
// "" for none.
std::string uncertainty_word(Uncertainty uncertainty);
// "" for unknown.
const char* better_word(Better better);

// Names of statistics over repeats: `rate_median` is the median of `rate`.
struct SampleName {
  std::string base;  // a pattern, or one of JUBE's statistics of a pattern (`rate_avg`)
  const statistics::NamedStatistic* statistic = nullptr;
};

// The words of statistics::suffix_statistics() with their underscore, in its order.
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
// The statistic and its base that the name says. JUBE's own files have none, and neither has a name
// of a parameter or pattern of the input.
std::optional<SampleName> sample_name(const Benchmark& benchmark, const std::string& name);

// A pattern or parameter whose values are texts: its `type` is string, as it is without one.
struct TextValue {
  const char* kind;  // "pattern" or "parameter"
  std::string name;
  std::string step;  // in whose rows it is one; empty: wherever it stands
};
// The rows that a value stands in: those of analysers, by name, or those of one step of them.
struct RowsOf {
  std::vector<Text> analysers;
  const Step* step = nullptr;  // null: all steps that give rows
};
// The one whose text the name has where a number is needed: its own, `_first`, `_last`, and any
// statistic but a count. There is none where the values are numbers, or may be. `rows`: it is
// enough that all rows of one step have texts.
std::optional<TextValue> text_named(const Benchmark& benchmark, const std::string& name,
                                    const RowsOf& rows = {});
// Whether the name is that of a statistic of numbers, which texts do not have: rate_avg,
// rate_median.
bool is_of_numbers(const Benchmark& benchmark, const std::string& name);

// Values that a scheduler records of each job. Tables may show them as columns.
struct JobValue {
  const char* name;
  ValueType type;
  const char* unit;
  const char* missing;  // why a complete record does not have it, a clause
};

// job_id, job_nodes, job_elapsed, job_energy, job_max_rss
const std::vector<JobValue>& job_values();
// Null for any other name, in JUBE's own files, and where a parameter or pattern has this name.
const JobValue* job_value(const Benchmark& benchmark, const std::string& name);

}  // namespace tally
