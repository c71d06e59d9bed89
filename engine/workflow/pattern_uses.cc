#include "engine/workflow/pattern_uses.h"

#include <algorithm>

namespace tally {

std::vector<Text> used_pattern_sets(const Analyser& analyser) {
  std::vector<Text> uses = analyser.use;
  for (const Analyse& analyse : analyser.analyse) {
    for (const AnalyseFile& file : analyse.files)
      uses.insert(uses.end(), file.use.begin(), file.use.end());
  }
  return uses;
}

std::set<const Pattern*> patterns_of_rows(const Benchmark& benchmark, const Analyser& analyser) {
  const auto is_row = [&](const Pattern& pattern) {
    return std::any_of(analyser.rows.begin(), analyser.rows.end(),
                       [&](const Text& row) { return row.value == pattern.name.value; });
  };
  std::set<const Pattern*> patterns;
  for (const auto& [name, set] : benchmark.pattern_sets) {
    if (std::none_of(set.patterns.begin(), set.patterns.end(), is_row)) continue;
    for (const Pattern& pattern : set.patterns) patterns.insert(&pattern);
  }
  return patterns;
}

}  // namespace tally
