#include "engine/results/rows/wanted.h"

#include <variant>

#include "engine/base/text.h"
#include "engine/results/read/used_names.h"

namespace tally {

Wanted::Wanted(const Benchmark& benchmark) {
  for (const Result& result : benchmark.results) {
    for (const auto& output : result.outputs) {
      if (const auto* shown = std::get_if<Table>(&output)) {
        names_.merge(names_in(*shown));
        columns(shown->columns);
      } else if (const auto* database = std::get_if<Database>(&output)) {
        names_.merge(names_in(*database));
        columns(database->keys);
      } else if (const auto* syslog = std::get_if<Syslog>(&output)) {
        names_.merge(names_in(*syslog));
        columns(syslog->keys);
      }
    }
  }
  for (const SampleNameUse& use : sample_names(benchmark, names_)) {
    names_.insert(use.parts.base);
    of_repeats_.insert(use.parts.base);
    repeats_ = true;
  }
}

void Wanted::columns(const std::vector<Column>& list) {
  for (const Column& column : list) {
    if (!shows_repeats(column)) continue;
    repeats_ = true;
    of_repeats_.insert(column.name.value);
    if (!column.expression.value.empty()) computes_repeats_ = true;
  }
}

}  // namespace tally
