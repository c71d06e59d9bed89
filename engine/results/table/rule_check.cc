#include "engine/results/table/early_checks.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/plan/planned_run.h"
#include "engine/results/table/known_truth.h"
#include "engine/results/table/shown_expression.h"
#include "engine/workpackage/values.h"

namespace tally {
namespace {

// The first rule of the step that is false for the workpackage. Null: none is known to be.
// `mixed`: see known_truth().
const Text* false_rule(PlannedRun& planned, const Step& step, const Workpackage& workpackage,
                       std::string* mixed) {
  const Benchmark& benchmark = planned.run.benchmark();
  const WorkpackageValues values(benchmark, planned.run.expander(), workpackage);
  const KnownValues known = [&](const std::string& name) {
    for (const Binding& b : workpackage.point.bindings) {
      if (planned.run.texts()[b.name] == name && planned.run.expander().is_final(b))
        return known_value(name, planned.run.texts()[b.value],
                           planned.run.expander().definition(b).type);
    }
    return KnownValue();
  };
  for (const std::string& name : used_sets(step, values.lookup())) {
    const auto set = benchmark.parameter_sets.find(name);
    if (set == benchmark.parameter_sets.end()) continue;
    for (const Text& rule : set->second.where)
      if (known_truth(rule.value, known, mixed) == Truth::no) return &rule;
  }
  return nullptr;
}

}  // namespace

void check_known_rules(PlannedRun& planned, Diagnostics& diagnostics) {
  const Benchmark& benchmark = planned.run.benchmark();
  struct Gone {
    Text rule;
    std::string mixed;
    std::set<std::pair<std::vector<int>, std::vector<TextId>>> points;
  };
  std::map<int, Gone> gone;
  std::set<int> left;
  for (const Workpackage& workpackage : planned.plan.workpackages) {
    const int number = workpackage.step;
    if (left.count(number) != 0) continue;
    std::string mixed;
    const Text* rule =
        false_rule(planned, benchmark.steps[static_cast<size_t>(number)], workpackage, &mixed);
    if (rule == nullptr) {
      left.insert(number);
      continue;
    }
    Gone& here = gone.try_emplace(number, Gone{*rule, mixed, {}}).first->second;
    std::vector<TextId> point;
    for (const Binding& b : workpackage.point.bindings) point.push_back(b.value);
    here.points.insert({workpackage.parents, std::move(point)});
  }
  for (const auto& [number, why] : gone) {
    if (left.count(number) != 0) continue;
    if (!why.mixed.empty()) {
      diagnostics.error(why.rule.mark,
                        fmt::format("the rule \"{}\" cannot be evaluated: {}",
                                    shown_expression(why.rule.value), why.mixed),
                        "give the parameter a `type`, or write the text in quotes");
      continue;
    }
    report_no_point(benchmark.steps[static_cast<size_t>(number)], why.rule, why.points.size(),
                    diagnostics);
  }
}

}  // namespace tally
