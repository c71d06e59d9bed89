#include "engine/workflow/table_names.h"

#include <algorithm>

#include "engine/base/text.h"

namespace tally {
namespace {

// The position of the word, from 1; 0: it is none of them.
size_t position(const char* words, std::string_view word) {
  const std::vector<std::string> all = split_strip(words, "|");
  const auto found = std::find(all.begin(), all.end(), word);
  return found == all.end() ? 0 : static_cast<size_t>(found - all.begin()) + 1;
}

// The word at that position.
std::string word(const char* words, size_t position) {
  return position == 0 ? std::string() : split_strip(words, "|")[position - 1];
}

}  // namespace

const statistics::NamedStatistic* statistic_of(std::string_view word) {
  for (const statistics::NamedStatistic* one : statistics::column_statistics())
    if (word == one->word) return one;
  return nullptr;
}

Uncertainty uncertainty_of(std::string_view word) {
  return static_cast<Uncertainty>(position(kUncertaintyWords, word));
}

std::string uncertainty_word(Uncertainty uncertainty) {
  return word(kUncertaintyWords, static_cast<size_t>(uncertainty));
}

const char* better_word(Better better) {
  if (better == Better::unknown) return "";
  return better == Better::higher ? "higher" : "lower";
}

const std::vector<std::string>& sample_suffixes() {
  static const std::vector<std::string> suffixes = [] {
    std::vector<std::string> all;
    for (const statistics::NamedStatistic* one : statistics::suffix_statistics())
      all.push_back(std::string("_") + one->word);
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
  if (find_pattern(benchmark, name) != nullptr) return true;
  const JobValue* value = job_value(benchmark, name);
  if (value != nullptr && value->type != ValueType::string) return true;
  return std::any_of(
      match_suffixes().begin(), match_suffixes().end(), [&](const std::string& suffix) {
        return name.ends_with(suffix) &&
               find_pattern(benchmark, name.substr(0, name.size() - suffix.size())) != nullptr;
      });
}

bool is_match_value_of(std::string_view name, std::string_view pattern) {
  if (!name.starts_with(pattern)) return false;
  const std::string_view suffix = name.substr(pattern.size());
  const std::vector<std::string>& all = match_suffixes();
  return suffix.empty() || contains(all, suffix);
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
  if (suffix == "_cnt" || suffix == "_sum2") return false;
  return std::ranges::none_of(statistics::suffix_statistics(), [&](const auto* one) {
    return !one->has_unit() && suffix.starts_with('_') && suffix.substr(1) == one->word;
  });
}

std::string pattern_of(const Benchmark& benchmark, const std::string& name) {
  const std::optional<SampleName> sample = sample_name(benchmark, name);
  const std::string& base = sample ? sample->base : name;
  if (find_pattern(benchmark, base) != nullptr) return base;
  for (const std::string& suffix : match_suffixes()) {
    if (!base.ends_with(suffix)) continue;
    const std::string rest = base.substr(0, base.size() - suffix.size());
    if (find_pattern(benchmark, rest) != nullptr) return rest;
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
    if (is_match_value(benchmark, name) || find_parameter(benchmark, name) != nullptr) return {};
    return SampleName{base, statistics::suffix_statistics()[i]};
  }
  return {};
}

namespace {

// Whether each of these of that name is a text, and there is one.
template <typename List>
bool are_texts(const List& all, const std::string& name) {
  bool any = false;
  for (const auto& one : all) {
    if (one.get().name.value != name) continue;
    if (one.get().type != ValueType::string) return false;
    any = true;
  }
  return any;
}

}  // namespace

std::optional<TextValue> text_named(const Benchmark& benchmark, const std::string& name) {
  if (find_parameter(benchmark, name) != nullptr) {
    const bool texts =
        find_pattern(benchmark, name) == nullptr && are_texts(all_parameters(benchmark), name);
    return texts ? std::optional(TextValue{"parameter", name}) : std::nullopt;
  }
  const std::string pattern = pattern_of(benchmark, name);
  const std::string_view suffix = std::string_view(name).substr(pattern.size());
  if (suffix.starts_with("_cnt") || !are_texts(all_patterns(benchmark), pattern)) return {};
  return TextValue{"pattern", pattern};
}

bool is_of_numbers(const Benchmark& benchmark, const std::string& name) {
  if (find_parameter(benchmark, name) != nullptr) return false;
  const std::string suffix = name.substr(pattern_of(benchmark, name).size());
  return !suffix.empty() && suffix != "_first" && suffix != "_last";
}

const std::vector<JobValue>& job_values() {
  static const std::vector<JobValue> values = {
      {"job_id", ValueType::string, "", ""},
      {"job_nodes", ValueType::string, "", "the scheduler did not say on which nodes it ran"},
      {"job_elapsed", ValueType::integer, "s", "the scheduler did not say how long it ran"},
      {"job_energy", ValueType::integer, "J",
       "Slurm measures no energy here (AcctGatherEnergyType)"},
      {"job_max_rss", ValueType::floating, "MiB",
       "Slurm gathers no memory use here (JobAcctGatherType)"},
  };
  return values;
}

const JobValue* job_value(const Benchmark& benchmark, const std::string& name) {
  if (!benchmark.rules.own_columns) return nullptr;
  for (const JobValue& value : job_values()) {
    if (value.name != name) continue;
    const bool defined =
        find_parameter(benchmark, name) != nullptr || find_pattern(benchmark, name) != nullptr;
    return defined ? nullptr : &value;
  }
  return nullptr;
}

}  // namespace tally
