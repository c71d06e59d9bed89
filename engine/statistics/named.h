// The statistics that workflows ask for by a word: `statistic: median` of a column, the name
// `rate_median`, `reference: {of: median}`. Each is one row of a table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/statistics/descriptive.h"
#include "engine/statistics/intervals.h"

namespace tally::statistics {

struct NamedStatistic {
  // A value has the unit of the sample's values, and is a whole number where they are. An average
  // has the unit alone. A ratio has no unit. A count is a whole number without a unit.
  enum class Kind { value, average, ratio, count };
  // The places in which it may be asked for. Suffixes are ends of names, and `of`. JUBE's rate_min and rate_max,
  // which are of the matches in one output, have the words of columns.
  enum class Place { column, suffix, both };

  const char* word;
  const char* legend;  // as the line below a table calls it
  Place place;
  double (*of)(const Sample&);
  Kind kind = Kind::value;
  // Its 95 % confidence interval, by a bootstrap with that seed or without any. Null: it has none.
  MedianInterval (*interval)(const Sample&, uint64_t seed) = nullptr;
  bool of_nothing = false;  // an empty sample has it, too

  bool has_unit() const { return kind == Kind::value || kind == Kind::average; }
};

std::span<const NamedStatistic> named_statistics();
// The ones that a column's `statistic` may name, and those that a suffix may.
const std::vector<const NamedStatistic*>& column_statistics();
const std::vector<const NamedStatistic*>& suffix_statistics();
// Their words, as the schema has choices: "median|mean|min".
const char* column_choices();
const char* suffix_choices();

}  // namespace tally::statistics
