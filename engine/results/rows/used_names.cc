#include "engine/results/rows/used_names.h"

#include <variant>

#include "engine/results/read/patterns.h"
#include "engine/workflow/builtin_names.h"

namespace tally {

UsedNames::UsedNames(const Benchmark& benchmark) {
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
  for (std::string& name : benchmark.fleet.names()) names_.insert(std::move(name));
  for (const SampleNameUse& use : sample_names(benchmark, names_)) {
    names_.insert(use.parts.base);
    of_repeats_.insert(use.parts.base);
    repeats_ = true;
  }
}

void UsedNames::columns(const std::vector<Column>& list) {
  for (const Column& column : list) {
    if (!shows_repeats(column)) continue;
    repeats_ = true;
    of_repeats_.insert(column.name.value);
    if (!column.expression.value.empty()) computes_repeats_ = true;
  }
}

namespace {

ValueType type_of(const WorkpackageView& workpackage, const std::string& name) {
  for (const auto& [typed, type] : workpackage.types) {
    if (typed == name) return type;
  }
  const BuiltinName* builtin = find_builtin(name);
  return builtin != nullptr ? builtin->type : ValueType::string;
}

}  // namespace

const ParameterValues::Name& ParameterValues::name_of(StepNames& step, size_t index,
                                                      const WorkpackageView& workpackage,
                                                      RowColumns& columns) const {
  const std::string& name = workpackage.values[index].first;
  if (index >= step.names.size()) step.names.resize(workpackage.values.size());
  Name& known = step.names[index];
  if (known.name == name) return known;
  known.name = name;
  known.with_step = name + "_" + workpackage.step;
  known.plain = used_names_.has(name) ? columns.add(name) : -1;
  known.stepped = used_names_.has(known.with_step) ? columns.add(known.with_step) : -1;
  return known;
}

void ParameterValues::add(const WorkpackageView& workpackage, bool own, Cells& values,
                          Records& records) {
  StepNames& step = steps_[workpackage.step];
  for (size_t i = 0; i < workpackage.values.size(); ++i) {
    const Name& name = name_of(step, i, workpackage, *records.columns);
    const int plain = own ? name.plain : -1;
    const bool takes_plain = plain >= 0 && values.cell(plain) == nullptr;
    const bool takes_stepped = name.stepped >= 0 && values.cell(name.stepped) == nullptr;
    if (!takes_plain && !takes_stepped) continue;
    const std::string& text = workpackage.values[i].second;
    std::optional<Value> value = make_value(text, type_of(workpackage, name.name), exact_);
    if (!value) value = Value{text};
    if (takes_plain && takes_stepped) values.set(plain, *value);
    values.set(takes_stepped ? name.stepped : plain, *std::move(value));
  }
  if (step.units != workpackage.units) {
    step.units = workpackage.units;
    for (const auto& [name, unit] : workpackage.units) {
      if (unit.empty()) continue;
      records.add_unit(name, unit);
      std::string& of_step = records.known[name + "_" + workpackage.step].unit;
      if (of_step.empty()) of_step = unit;
    }
  }
  if (step.types != workpackage.types) {
    step.types = workpackage.types;
    for (const auto& [name, type] : workpackage.types) {
      std::optional<ValueType>& known = records.known[name].type;
      if (!known) known = type;
    }
  }
}

}  // namespace tally
