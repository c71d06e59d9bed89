#include "engine/results/table/rule_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/plan/planned_check.h"
#include "engine/python/number.h"
#include "engine/results/table/known_truth.h"
#include "engine/workpackage/values.h"

namespace tally {
namespace {

// The value of a point's parameter as a rule sees it: a number where its text reads as one.
KnownValue value_in_rule(const std::string* text) {
  KnownValue value;
  if (text == nullptr) return value;
  const std::optional<double> number = python_float(*text);
  value.kind = number ? KnownValue::Kind::number : KnownValue::Kind::text;
  value.known = true;
  value.number = number.value_or(0);
  value.text = *text;
  return value;
}

// The first rule of the step that is false for the workpackage. Null: none is known to be.
const Text* false_rule(PlannedRun& planned, const Step& step, const Workpackage& workpackage) {
  const Benchmark& benchmark = planned.run.benchmark();
  const WorkpackageValues values(benchmark, planned.run.expander(), workpackage);
  const KnownValues known = [&](const std::string& name) {
    for (const Binding& b : workpackage.point.bindings) {
      if (planned.run.texts()[b.name] == name)
        return value_in_rule(planned.run.expander().is_final(b) ? &planned.run.texts()[b.value]
                                                                : nullptr);
    }
    return KnownValue();
  };
  std::string mixed;
  for (const std::string& name : used_sets(step, values.lookup())) {
    const auto set = benchmark.parameter_sets.find(name);
    if (set == benchmark.parameter_sets.end()) continue;
    for (const Text& rule : set->second.where)
      if (known_truth(rule.value, known, &mixed) == Truth::no) return &rule;
  }
  return nullptr;
}

}  // namespace

void check_known_rules(PlannedRun& planned, Diagnostics& diagnostics) {
  const Benchmark& benchmark = planned.run.benchmark();
  struct Gone {
    Text rule;
    std::set<std::pair<std::vector<int>, std::vector<TextId>>> points;
  };
  std::map<int, Gone> gone;
  std::set<int> left;
  for (const Workpackage& workpackage : planned.plan.workpackages) {
    const int number = workpackage.step;
    if (left.count(number) != 0) continue;
    const Text* rule =
        false_rule(planned, benchmark.steps[static_cast<size_t>(number)], workpackage);
    if (rule == nullptr) {
      left.insert(number);
      continue;
    }
    Gone& here = gone.try_emplace(number, Gone{*rule, {}}).first->second;
    std::vector<TextId> point;
    for (const Binding& b : workpackage.point.bindings) point.push_back(b.value);
    here.points.insert({workpackage.parents, std::move(point)});
  }
  for (const auto& [number, why] : gone) {
    if (left.count(number) != 0) continue;
    report_no_point(benchmark.steps[static_cast<size_t>(number)], why.rule, why.points.size(),
                    diagnostics);
  }
}

}  // namespace tally
