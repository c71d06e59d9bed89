#include "engine/workflow/workflow.h"

#include <algorithm>
#include <set>

#include "engine/base/secrets.h"
#include "engine/workflow/lookup.h"

namespace tally {

bool is_secret(const Parameter& parameter) {
  return !secret_entry(parameter, "").empty();
}

std::string secret_entry(const Parameter& parameter, const std::string& value) {
  const bool found = parameter.mode == Mode::env || parameter.mode == Mode::shell;
  if ((parameter.exported || found) && names_secret(parameter.name.value))
    return parameter.name.value + "=" + value;
  const bool of_secret = parameter.mode == Mode::env && names_secret(parameter.value.value);
  return of_secret ? parameter.value.value + "=" + value : "";
}

std::vector<std::reference_wrapper<const Parameter>> all_parameters(const Benchmark& benchmark) {
  std::vector<std::reference_wrapper<const Parameter>> all;
  for (const auto& [name, set] : benchmark.parameter_sets)
    all.insert(all.end(), set.parameters.begin(), set.parameters.end());
  return all;
}

std::vector<std::reference_wrapper<const Pattern>> all_patterns(const Benchmark& benchmark) {
  std::vector<std::reference_wrapper<const Pattern>> all;
  for (const auto& [name, set] : benchmark.pattern_sets)
    all.insert(all.end(), set.patterns.begin(), set.patterns.end());
  return all;
}

const Parameter* find_parameter(const Benchmark& benchmark, std::string_view name) {
  for (const auto& [set_name, set] : benchmark.parameter_sets)
    for (const Parameter& parameter : set.parameters)
      if (parameter.name.value == name) return &parameter;
  return nullptr;
}

const Pattern* find_pattern(const Benchmark& benchmark, std::string_view name) {
  for (const auto& [set_name, set] : benchmark.pattern_sets)
    for (const Pattern& pattern : set.patterns)
      if (pattern.name.value == name) return &pattern;
  return nullptr;
}

bool has_users(const Benchmark& benchmark, std::string_view name) {
  return std::ranges::any_of(all_parameters(benchmark), [&](const Parameter& parameter) {
    return parameter.owner == Owner::user && parameter.name.value == name;
  });
}

bool has_secrets(const Benchmark& benchmark) {
  return std::ranges::any_of(all_parameters(benchmark), is_secret);
}

std::span<const ResourceKey> resource_keys() {
  static constexpr ResourceKey kKeys[] = {
      {"nodes", "nodes", &Resources::nodes},
      {"tasks_per_node", "taskspernode", &Resources::tasks_per_node},
      {"cpus_per_task", "threadspertask", &Resources::cpus_per_task},
      {"gpus_per_node", "gpuspernode", &Resources::gpus_per_node},
      {"time", "timelimit", &Resources::time},
      {"partition", "queue", &Resources::partition},
      {"account", "account", &Resources::account},
      {"memory", "memory", &Resources::memory},
      {"hint", "site_hint", &Resources::hint}};
  return kKeys;
}

std::vector<std::string> Fleet::names() const {
  if (!any) return {};
  std::vector<std::string> all = {kFleetNode, kFleetPair};
  for (const std::vector<Text>* list : {&same, &show})
    for (const Text& name : *list) all.push_back(name.value);
  if (!part.value.empty()) all.push_back(part.value);
  return all;
}

const std::string& Fleet::find_given(const std::string& name) const {
  static const std::string kNone;
  const auto found = given.find(name);
  return found == given.end() ? kNone : found->second;
}

const Step* Benchmark::find_step(const std::string& step) const {
  for (const Step& candidate : steps) {
    if (candidate.name.value == step) return &candidate;
  }
  return nullptr;
}

namespace {

bool depends_on(const Benchmark& benchmark, const std::string& step, const std::string& ancestor,
                std::set<std::string>& seen) {
  const Step* found = benchmark.find_step(step);
  if (found == nullptr || !seen.insert(step).second) return false;
  return std::ranges::any_of(found->depend, [&](const Text& parent) {
    return parent.value == ancestor || depends_on(benchmark, parent.value, ancestor, seen);
  });
}

}  // namespace

bool depends_on(const Benchmark& benchmark, const std::string& step, const std::string& ancestor) {
  std::set<std::string> seen;
  return depends_on(benchmark, step, ancestor, seen);
}

std::vector<const Table*> tables_of(const Result& result) {
  std::vector<const Table*> tables;
  for (const auto& output : result.outputs) {
    if (const Table* table = std::get_if<Table>(&output)) tables.push_back(table);
  }
  return tables;
}

std::vector<const Table*> tables_of(const Benchmark& benchmark) {
  std::vector<const Table*> all;
  for (const Result& result : benchmark.results) {
    const std::vector<const Table*> tables = tables_of(result);
    all.insert(all.end(), tables.begin(), tables.end());
  }
  return all;
}

const Table* drawn_table(const Result& result, const Chart& chart) {
  const Table* found = nullptr;
  for (const Table* table : tables_of(result)) {
    if (table->name.value == chart.table.value) return table;
    if (chart.table.value.empty() && found != nullptr) return nullptr;  // which one?
    if (chart.table.value.empty()) found = table;
  }
  return found;
}

std::string platform_name(std::string_view name) {
  return std::string(kPlatformPrefix).append(name);
}

std::string_view without_platform_prefix(std::string_view name) {
  return starts_with(name, kPlatformPrefix) ? name.substr(kPlatformPrefix.size())
                                            : std::string_view();
}

const std::string& no_platform_value() {
  static const std::string none;
  return none;
}

const std::string* job_value(const Lookup& lookup, std::string_view name) {
  const std::string* found = lookup(platform_name(name));
  if (found == &no_platform_value()) return nullptr;
  return found != nullptr ? found : lookup(name);
}

bool is_users(const Lookup& lookup, std::string_view name) {
  const std::string* found = lookup(platform_name(name));
  return found != nullptr && found != lookup(name);
}

}  // namespace tally
