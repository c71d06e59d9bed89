#include "engine/results/rows/parameter_values.h"

#include <set>

#include "engine/base/text.h"

namespace tally {
namespace {

ValueType type_of(const WorkpackageView& workpackage, const std::string& name) {
  for (const auto& [typed, type] : workpackage.types) {
    if (typed == name) return type;
  }
  static const std::set<std::string> whole = {"jube_benchmark_id", "jube_step_iterations",
                                              "jube_step_cycles",  "jube_wp_id",
                                              "jube_wp_iteration", "jube_wp_cycle"};
  const bool parent = starts_with(name, "jube_wp_parent_") && name.size() > 3 &&
                      name.compare(name.size() - 3, 3, "_id") == 0;
  return parent || whole.count(name) != 0 ? ValueType::integer : ValueType::string;
}

}  // namespace

const ParameterValues::Name& ParameterValues::name_of(StepNames& step, size_t place,
                                                      const WorkpackageView& workpackage) const {
  const std::string& name = workpackage.values[place].first;
  if (place >= step.names.size()) step.names.resize(workpackage.values.size());
  Name& known = step.names[place];
  if (known.name == name) return known;
  known.name = name;
  known.with_step = name + "_" + workpackage.step;
  known.plain = wanted_.has(name);
  known.stepped = wanted_.has(known.with_step);
  return known;
}

void ParameterValues::add(const WorkpackageView& workpackage, bool own,
                          std::map<std::string, Value>& values, Records& records) {
  StepNames& step = steps_[workpackage.step];
  for (size_t i = 0; i < workpackage.values.size(); ++i) {
    const Name& name = name_of(step, i, workpackage);
    const bool plain = own && name.plain;
    if (!plain && !name.stepped) continue;
    const std::string& text = workpackage.values[i].second;
    std::optional<Value> value = make_value(text, type_of(workpackage, name.name), exact_);
    if (!value) value = Value{text};
    if (plain && name.stepped) values.try_emplace(name.name, *value);
    values.try_emplace(name.stepped ? name.with_step : name.name, *std::move(value));
  }
  if (step.units != workpackage.units) {
    step.units = workpackage.units;
    for (const auto& [name, unit] : workpackage.units) {
      if (unit.empty()) continue;
      records.add_unit(name, unit);
      records.units.try_emplace(name + "_" + workpackage.step, unit);
    }
  }
  if (step.types != workpackage.types) {
    step.types = workpackage.types;
    for (const auto& [name, type] : workpackage.types) records.types.try_emplace(name, type);
  }
}

}  // namespace tally
