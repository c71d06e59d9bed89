#include "engine/results/table/origin.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "engine/results/read/used_names.h"
#include "engine/workflow/sample_names.h"

namespace tally {

namespace {

std::set<std::string> words_of(const Column& column) {
  std::set<std::string> words;
  add_words(column.expression.value.empty() ? column.name.value : column.expression.value, words);
  return words;
}

// Whether it is the pattern's name, or that of a statistic: rate, rate_avg, rate_median,
// rate_avg_median.
bool is_value_of(const std::string& pattern, const std::string& word) {
  if (!starts_with(word, pattern)) return false;
  const std::string rest = word.substr(pattern.size());
  const std::vector<std::string>& samples = sample_suffixes();
  const auto is_sample = [&](const std::string& suffix) {
    return suffix.empty() || std::find(samples.begin(), samples.end(), suffix) != samples.end();
  };
  if (is_sample(rest)) return true;
  return std::any_of(match_suffixes().begin(), match_suffixes().end(), [&](const std::string& one) {
    return starts_with(rest, one) && is_sample(rest.substr(one.size()));
  });
}

// Whether the name is that of a number of matches or of repeats: rate_cnt, rate_n, rate_avg_n.
bool is_count_of(const std::string& pattern, const std::string& word) {
  const std::string rest = word.substr(pattern.size());
  return starts_with(rest, "_cnt") || (rest.size() > 1 && rest.substr(rest.size() - 2) == "_n");
}

std::string with_short(std::string marks, bool is_short) {
  if (is_short) marks += std::string(marks.empty() ? "" : " ") + kShort;
  return marks;
}

}  // namespace

bool names_reused(const Record& row, const Column& column) {
  if (row.reused_values->empty()) return false;
  const std::set<std::string> words = words_of(column);
  return std::any_of(
      row.reused_values->begin(), row.reused_values->end(), [&](const std::string& pattern) {
        return std::any_of(words.begin(), words.end(),
                           [&](const std::string& word) { return is_value_of(pattern, word); });
      });
}

std::map<std::string, double> short_values_of(const Record& row, const Column& column) {
  std::map<std::string, double> found;
  if (row.short_values->empty() || !row.measured()) return found;
  const std::set<std::string> words = words_of(column);
  for (const auto& [pattern, seconds] : *row.short_values) {
    if (std::any_of(words.begin(), words.end(), [&, &name = pattern](const std::string& word) {
          return is_value_of(name, word) && !is_count_of(name, word);
        }))
      found.emplace(pattern, seconds);
  }
  return found;
}

std::map<std::string, double> short_values_of(const Record& row,
                                              const std::vector<Column>& columns) {
  std::map<std::string, double> found;
  if (row.short_values->empty()) return found;
  for (const Column& column : columns) found.merge(short_values_of(row, column));
  return found;
}

std::string marks_of(const Record& row, const std::vector<Column>& columns) {
  return with_short(row.machine_mark(), !short_values_of(row, columns).empty());
}

std::string marks_of(const Record& row, const Column& column) {
  return with_short(row.machine_mark(), !short_values_of(row, column).empty());
}

Origin origin_of(const Benchmark& benchmark, const Record& row, const Column& column) {
  const std::set<std::string> words = words_of(column);
  Origin origin = Origin::none;
  for (const std::string& word : words) {
    const std::string pattern = pattern_of(benchmark, word);
    if (row.reused_values->count(pattern) != 0) {
      origin = Origin::reused;
    } else if (is_match_value(benchmark, pattern)) {
      return Origin::measured;
    }
  }
  return origin;
}

}  // namespace tally
