#include "engine/results/rows/wanted.h"

#include <variant>

#include "engine/base/text.h"
#include "engine/results/read/used_names.h"

namespace tally {

Wanted::Wanted(const Benchmark& benchmark, const std::set<std::string>& more) : names_(more) {
  for (const Result& result : benchmark.results) {
    for (const auto& output : result.outputs) {
      if (const auto* shown = std::get_if<Table>(&output)) {
        names_.merge(names_in(*shown));
        columns(benchmark, shown->columns);
      } else if (const auto* database = std::get_if<Database>(&output)) {
        names_.merge(names_in(*database));
        columns(benchmark, database->keys);
      } else if (const auto* syslog = std::get_if<Syslog>(&output)) {
        names_.merge(names_in(*syslog));
        columns(benchmark, syslog->keys);
      }
    }
  }
  for (const SampleNameUse& use : sample_names(benchmark, names_)) {
    names_.insert(use.parts.base);
    of_repeats_.insert(use.parts.base);
    repeats_ = true;
  }
}

void Wanted::columns(const Benchmark& benchmark, const std::vector<Column>& list) {
  for (const Column& column : list) {
    // A baseline row is found by its values and by all parameters that tell rows apart.
    if (!column.relative_to.empty()) {
      for (const auto& [set_name, set] : benchmark.parameter_sets) {
        for (const Parameter& parameter : set.parameters) names_.insert(parameter.name.value);
      }
    }
    if (!shows_repeats(column)) continue;
    repeats_ = true;
    of_repeats_.insert(column.name.value);
    if (!column.expression.value.empty()) computes_repeats_ = true;
  }
}

}  // namespace tally
