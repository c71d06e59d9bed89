#include "engine/results/rows/analysed_patterns.h"

#include <algorithm>
#include <optional>

#include "engine/results/read/patterns.h"
#include "engine/workflow/pattern_uses.h"
#include "engine/workflow/table_names.h"

namespace tally {

AnalysedPatterns::AnalysedPatterns(const Benchmark& benchmark, const Analyser& analyser,
                                   const UsedNames& used_names)
    : benchmark_(benchmark),
      used_names_(used_names),
      all_(patterns_of_analyser(benchmark, analyser)) {
  for (const Pattern* pattern : all_) {
    by_name_[pattern->name.value] = pattern;
    if (pattern->mode != PatternMode::pattern) derived_.push_back(pattern);
  }
  for (const Pattern* pattern : derived_)
    bases_[pattern->name.value] = names_behind(all_, *pattern);
  for (const Pattern* pattern : all_) choose_statistics(*pattern);
  for (const Pattern* pattern : patterns_of(benchmark, analyser.use))
    everywhere_.insert(pattern->name.value);
  for (const Analyse& analyse : analyser.analyse) {
    of_step_.emplace(&analyse, patterns_of_analyser(benchmark, analyser, &analyse));
    for (const AnalyseFile& file : analyse.files) {
      std::set<std::string>& names = of_file_[&file];
      for (const Pattern* pattern : patterns_of(benchmark, file.use))
        names.insert(pattern->name.value);
    }
  }
}

bool AnalysedPatterns::applies(const Pattern& pattern, const FoundFiles& files) const {
  const std::string& name = pattern.name.value;
  return everywhere_.count(name) != 0 || std::ranges::any_of(files, [&](const AnalyseFile* file) {
           return of_file_.at(file).count(name) != 0;
         });
}

// A computed pattern may use any statistic, and also a text that was found may name one. Without
// such patterns, only those that the results show are kept.
void AnalysedPatterns::choose_statistics(const Pattern& pattern) {
  const std::string& name = pattern.name.value;
  std::vector<StoredStatistic> all = all_statistics(name);
  if (derived_.empty()) {
    std::erase_if(all, [&](const StoredStatistic& one) {
      return one.name != name && !has(one.name) && !used_names_.has(one.name);
    });
  }
  statistics_.emplace(name, std::move(all));
}

void AnalysedPatterns::add_with_computed(const std::string& pattern,
                                         std::set<std::string>* names) const {
  names->insert(pattern);
  for (const Pattern* one : derived_) {
    if (is_base(pattern, *one)) names->insert(one->name.value);
  }
}

bool AnalysedPatterns::is_base(const std::string& pattern, const Pattern& derived) const {
  const std::set<std::string>& names = bases(derived);
  return std::ranges::any_of(
      names, [&](const std::string& base) { return pattern_of(benchmark_, base) == pattern; });
}

void AnalysedPatterns::describe(Records& records) const {
  for (const Pattern* pattern : all_) {
    const std::string& name = pattern->name.value;
    const bool described = records.known[name].type.has_value();  // a pattern of the same name
    records.known[name].type = pattern->type;
    if (pattern->unit.empty()) continue;
    const auto add = [&](const std::string& suffix) {
      ValueFacts& values = records.known[name + suffix];
      if (described && !values.unit.empty() && values.unit != pattern->unit &&
          values.other_unit.empty())
        values.other_unit = values.unit;
      values.unit = pattern->unit;
    };
    add("");
    for (const std::string& suffix : match_suffixes()) {
      if (has_unit(suffix)) add(suffix);
    }
    if (!benchmark_.rules.own_columns) continue;
    for (const std::string& suffix : sample_suffixes()) {
      std::string& unit = records.known[name + suffix].unit;
      if (has_unit(suffix) && unit.empty()) unit = pattern->unit;
    }
  }
}

void add_default(const Pattern& pattern, Cells& values) {
  const std::string& name = pattern.name.value;
  if (pattern.mode != PatternMode::pattern || !pattern.default_value || values.has(name)) return;
  const auto store = [&](const std::string& one, Value value) {
    values.set(one, std::move(value));
  };
  if (std::optional<Value> value = make_value(*pattern.default_value, pattern.type)) {
    store_default(name, *value, pattern.type, store);
  } else {
    store_default(name, {*pattern.default_value}, ValueType::string, store);
  }
}

}  // namespace tally
