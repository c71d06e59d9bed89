#include "engine/plan/package_names.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <filesystem>

namespace tally {
namespace {

// jube_wp_envstr and jube_wp_envlist: the exported parameters, by name without regard to case.
void add_environment(const Expander& expander, const WorkPackage& package, NamedValues& list) {
  NamedValues exported;
  for (const Binding& binding : package.point.bindings) {
    if (!expander.definition(binding).exported) continue;
    exported.emplace_back(expander.pool()[binding.name], expander.pool()[binding.value]);
  }
  std::stable_sort(exported.begin(), exported.end(), [](const auto& a, const auto& b) {
    return strcasecmp(a.first.c_str(), b.first.c_str()) < 0;
  });
  std::string lines;
  std::string names;
  for (const auto& [name, value] : exported) {
    lines += fmt::format("export {}=\"{}\"\n", name, value);
    if (!names.empty()) names += ',';
    names += name;
  }
  list.emplace_back("jube_wp_envstr", lines);
  list.emplace_back("jube_wp_envlist", names);
}

}  // namespace

std::string package_folder(const Benchmark& benchmark, const WorkPackage& package) {
  return fmt::format("{:06}_{}", package.id,
                     benchmark.steps[static_cast<size_t>(package.step)].name.value);
}

NamedValues package_builtins(const Benchmark& benchmark, const Expander& expander,
                             const std::vector<WorkPackage>& packages, const WorkPackage& package) {
  const Step& step = benchmark.steps[static_cast<size_t>(package.step)];
  NamedValues list{{"jube_wp_id", std::to_string(package.id)},
                   {"jube_wp_padid", fmt::format("{:06}", package.id)},
                   {"jube_wp_status", "RUNNING"},
                   {"jube_wp_iteration", std::to_string(package.iteration)},
                   {"jube_wp_cycle", std::to_string(package.cycle)}};
  for (const int id : package.parents) {
    const WorkPackage& parent = packages[static_cast<size_t>(id)];
    const std::string& name = benchmark.steps[static_cast<size_t>(parent.step)].name.value;
    list.emplace_back("jube_wp_parent_" + name + "_id", std::to_string(id));
  }
  for (auto& builtin : expander.step_builtins(step)) list.push_back(std::move(builtin));
  std::string folder = package_folder(benchmark, package);
  if (!step.suffix.value.empty()) {
    folder += '_';
    folder += substitute(step.suffix.value, package_lookup(expander, package, list));
  }
  const std::string work = expander.run().rundir + "/" + folder + "/work";
  std::error_code ignored;
  list.emplace_back("jube_wp_relpath", work);
  list.emplace_back("jube_wp_abspath",
                    std::filesystem::absolute(work, ignored).lexically_normal().string());
  add_environment(expander, package, list);
  return list;
}

Lookup package_lookup(const Expander& expander, const WorkPackage& package) {
  static const NamedValues none;
  return package_lookup(expander, package, none);
}

Lookup package_lookup(const Expander& expander, const WorkPackage& package,
                      const NamedValues& builtins) {
  return [&](std::string_view name) -> const std::string* {
    for (const Binding& binding : package.point.bindings) {
      if (expander.pool()[binding.name] == name) return &expander.pool()[binding.value];
    }
    for (const auto& [key, value] : builtins) {
      if (key == name) return &value;
    }
    return nullptr;
  };
}

}  // namespace tally
