#include "engine/results/origin.h"

#include <set>
#include <string>

#include "engine/results/table_names.h"
#include "engine/workflow/sample_names.h"

namespace tally {

Origin origin_of(const Benchmark& benchmark, const Record& row, const Column& column) {
  std::set<std::string> words;
  add_words(column.expression.value.empty() ? column.name.value : column.expression.value, words);
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
