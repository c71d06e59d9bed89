#include "engine/workflow/sample_names.h"

#include <algorithm>

#include "engine/workflow/job_values.h"

namespace tally {
namespace {

bool is_pattern(const Benchmark& benchmark, const std::string& name) {
  return std::any_of(
      benchmark.pattern_sets.begin(), benchmark.pattern_sets.end(), [&](const auto& entry) {
        const auto& list = entry.second.patterns;
        return std::any_of(list.begin(), list.end(),
                           [&](const Pattern& pattern) { return pattern.name.value == name; });
      });
}

bool is_parameter(const Benchmark& benchmark, const std::string& name) {
  return std::any_of(
      benchmark.parameter_sets.begin(), benchmark.parameter_sets.end(), [&](const auto& entry) {
        const auto& list = entry.second.parameters;
        return std::any_of(list.begin(), list.end(), [&](const Parameter& parameter) {
          return parameter.name.value == name;
        });
      });
}

}  // namespace

const std::vector<std::string>& sample_suffixes() {
  static const std::vector<std::string> suffixes = [] {
    std::vector<std::string> all;
    for (const std::string& word : sample_words()) all.push_back("_" + word);
    return all;
  }();
  return suffixes;
}

const std::vector<std::string>& match_suffixes() {
  static const std::vector<std::string> suffixes = {"_first", "_last", "_cnt", "_min", "_max",
                                                    "_sum",   "_sum2", "_avg", "_std"};
  return suffixes;
}

bool is_match_value(const Benchmark& benchmark, const std::string& name) {
  if (is_pattern(benchmark, name)) return true;
  const JobValue* value = job_value(benchmark, name);
  if (value != nullptr && value->type != ValueType::string) return true;
  return std::any_of(match_suffixes().begin(), match_suffixes().end(),
                     [&](const std::string& suffix) {
                       return name.ends_with(suffix) &&
                              is_pattern(benchmark, name.substr(0, name.size() - suffix.size()));
                     });
}

bool is_match_value_of(std::string_view name, std::string_view pattern) {
  if (!name.starts_with(pattern)) return false;
  const std::string_view suffix = name.substr(pattern.size());
  const std::vector<std::string>& all = match_suffixes();
  return suffix.empty() || std::find(all.begin(), all.end(), suffix) != all.end();
}

bool is_value_of(std::string_view name, std::string_view pattern) {
  if (is_match_value_of(name, pattern)) return true;
  return std::any_of(
      sample_suffixes().begin(), sample_suffixes().end(), [&](const std::string& suffix) {
        return name.ends_with(suffix) &&
               is_match_value_of(name.substr(0, name.size() - suffix.size()), pattern);
      });
}

bool has_unit(std::string_view suffix) {
  for (const char* without : {"_cnt", "_sum2", "_cv", "_n", "_outliers"}) {
    if (suffix == without) return false;
  }
  return true;
}

std::string pattern_of(const Benchmark& benchmark, const std::string& name) {
  const std::optional<SampleName> sample = sample_name(benchmark, name);
  const std::string& base = sample ? sample->base : name;
  if (is_pattern(benchmark, base)) return base;
  for (const std::string& suffix : match_suffixes()) {
    if (!base.ends_with(suffix)) continue;
    const std::string rest = base.substr(0, base.size() - suffix.size());
    if (is_pattern(benchmark, rest)) return rest;
  }
  return base;
}

std::optional<SampleName> sample_name(const Benchmark& benchmark, const std::string& name) {
  if (!benchmark.rules.own_columns) return {};
  const std::vector<std::string>& suffixes = sample_suffixes();
  for (size_t i = 0; i < suffixes.size(); ++i) {
    if (!name.ends_with(suffixes[i])) continue;
    const std::string base = name.substr(0, name.size() - suffixes[i].size());
    if (!is_match_value(benchmark, base)) continue;
    if (is_match_value(benchmark, name) || is_parameter(benchmark, name)) return {};
    return SampleName{base, static_cast<SampleStatistic>(i)};
  }
  return {};
}

}  // namespace tally
