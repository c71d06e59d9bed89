#include "engine/check/pattern_names.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace tally {

void check_pattern_names(const Benchmark& benchmark, const Analyser& analyser,
                         const Analyse& analyse, Diagnostics& diagnostics) {
  std::vector<Text> uses = analyser.use;
  for (const AnalyseFile& file : analyse.files)
    uses.insert(uses.end(), file.use.begin(), file.use.end());
  std::map<std::string, const Pattern*> known;
  std::set<const Pattern*> reported;
  for (const Text& use : uses) {
    const auto set = benchmark.pattern_sets.find(use.value);
    if (set == benchmark.pattern_sets.end()) continue;
    for (const Pattern& pattern : set->second.patterns) {
      const auto [other, is_new] = known.emplace(pattern.name.value, &pattern);
      if (is_new || other->second->value.value == pattern.value.value) continue;
      if (!reported.insert(&pattern).second) continue;
      diagnostics.error(
          pattern.name.mark,
          fmt::format("Cannot use patternset \"{}\" in analyser \"{}\", because there "
                      "are incompatible pattern name combinations: {}",
                      use.value, analyser.name.value, pattern.name.value),
          "give the patterns different names");
      diagnostics.note(other->second->name.mark, "the other pattern of this name is here");
    }
  }
}

}  // namespace tally
