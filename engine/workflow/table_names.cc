#include "engine/workflow/table_names.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"
#include "engine/workflow/pattern_uses.h"

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

// The kinds of values that one name has.
struct Kinds {
  bool texts = false, others = false;
  void add(ValueType type) { (type == ValueType::string ? texts : others) = true; }
  bool none() const { return !texts && !others; }
  bool only_texts() const { return texts && !others; }
};

template <typename List>
Kinds kinds_of(const List& all, const std::string& name) {
  Kinds kinds;
  for (const auto& one : all) {
    if (one.get().name.value == name) kinds.add(one.get().type);
  }
  return kinds;
}

// The kinds that a name has in rows of a step: its own, or else those of the steps before it. `add`
// adds those of one step.
template <typename Add>
Kinds kinds_in_rows(const Benchmark& benchmark, const std::string& step, const Add& add) {
  Kinds kinds;
  add(step, kinds);
  if (!kinds.none()) return kinds;
  for (const Step& before : benchmark.steps) {
    if (depends_on(benchmark, step, before.name.value)) add(before.name.value, kinds);
  }
  return kinds;
}

void add_parameters(const Benchmark& benchmark, const std::string& step, const std::string& name,
                    Kinds& kinds) {
  for (const Text& use : benchmark.find_step(step)->use) {
    const auto set = benchmark.parameter_sets.find(use.value);
    if (set == benchmark.parameter_sets.end()) continue;
    for (const Parameter& one : set->second.parameters)
      if (one.name.value == name) kinds.add(one.type);
  }
}

void add_patterns(const Benchmark& benchmark, const Analyser& analyser, const std::string& step,
                  const std::string& name, Kinds& kinds) {
  for (const Analyse& analyse : analyser.analyse) {
    if (analyse.step.value != step) continue;
    for (const AnalyseFile& file : analyse.files) {
      for (const Pattern* one : patterns_for(benchmark, analyser, file))
        if (one->name.value == name) kinds.add(one->type);
    }
  }
}

// Whether rows of the analyser are those of the step: no other step that it reads depends on it.
bool gives_rows(const Benchmark& benchmark, const Analyser& analyser, const Step& step) {
  const auto reads = [&](const auto& is) { return std::ranges::any_of(analyser.analyse, is); };
  return step.active.value != "false" &&
         reads([&](const Analyse& one) { return one.step.value == step.name.value; }) &&
         !reads([&](const Analyse& one) {
           return depends_on(benchmark, one.step.value, step.name.value);
         });
}

// A set that a parameter chooses may have any type.
bool chooses_sets(const Analyser& analyser) {
  return std::ranges::any_of(used_pattern_sets(analyser),
                             [](const Text& use) { return has_dollar(use.value); });
}

// The first step of which all rows have texts. Empty: there is none. `pattern`: the name is that of a
// pattern, and else of a parameter.
std::string step_with_texts(const Benchmark& benchmark, const RowsOf& rows, const std::string& name,
                            bool pattern) {
  for (const Analyser& analyser : benchmark.analysers) {
    const auto is = [&](const Text& one) { return one.value == analyser.name.value; };
    if (std::ranges::none_of(rows.analysers, is) || chooses_sets(analyser)) continue;
    for (const Step& step : benchmark.steps) {
      if (rows.step != nullptr ? rows.step != &step : !gives_rows(benchmark, analyser, step))
        continue;
      const auto add = [&](const std::string& one, Kinds& kinds) {
        if (pattern) {
          add_patterns(benchmark, analyser, one, name, kinds);
        } else {
          add_parameters(benchmark, one, name, kinds);
        }
      };
      if (kinds_in_rows(benchmark, step.name.value, add).only_texts()) return step.name.value;
    }
  }
  return {};
}

}  // namespace

std::optional<TextValue> text_named(const Benchmark& benchmark, const std::string& name,
                                    const RowsOf& rows) {
  const bool parameter = find_parameter(benchmark, name) != nullptr;
  if (parameter && find_pattern(benchmark, name) != nullptr) return {};
  const std::string base = parameter ? name : pattern_of(benchmark, name);
  if (std::string_view(name).substr(base.size()).starts_with("_cnt")) return {};
  const Kinds all = parameter ? kinds_of(all_parameters(benchmark), base)
                              : kinds_of(all_patterns(benchmark), base);
  if (!all.texts) return {};
  std::string step;
  if (all.others) step = step_with_texts(benchmark, rows, base, !parameter);
  if (all.others && step.empty()) return {};
  return TextValue{parameter ? "parameter" : "pattern", base, std::move(step)};
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
