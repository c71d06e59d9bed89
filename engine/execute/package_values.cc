#include "engine/execute/package_values.h"

#include <strings.h>
#include <algorithm>

#include "engine/base/text.h"
#include "engine/execute/run_directory.h"
#include "steps/kinds.h"

namespace tally {
namespace {

using Named = std::vector<std::pair<std::string, std::string>>;

const std::string* find_in(const Named& list, std::string_view name) {
  for (const auto& [key, value] : list) {
    if (key == name) return &value;
  }
  return nullptr;
}

// jube_wp_envstr: "export NAME="value"" lines, by name without regard to case.
std::string environment_lines(const Named& exported) {
  Named sorted = exported;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return strcasecmp(a.first.c_str(), b.first.c_str()) < 0;
  });
  std::string lines;
  for (const auto& [name, value] : sorted) lines += "export " + name + "=\"" + value + "\"\n";
  return lines;
}

std::string environment_names(const Named& exported) {
  std::vector<std::string> names;
  names.reserve(exported.size());
  for (const auto& [name, value] : exported) names.push_back(name);
  std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return strcasecmp(a.c_str(), b.c_str()) < 0;
  });
  return join(names, ",");
}

}  // namespace

Named run_builtins(const RunInfo& run, const Step* step) {
  Named list{{"jube_benchmark_id", std::to_string(run.id)},
             {"jube_benchmark_padid", padded_id(run.id)},
             {"jube_benchmark_name", run.name},
             {"jube_benchmark_home", run.home},
             {"jube_benchmark_rundir", absolute_path(run.rundir)},
             {"jube_benchmark_start", run.start}};
  if (step != nullptr) {
    list.emplace_back("jube_step_name", step->name.value);
    list.emplace_back("jube_step_iterations", step->iterations.value);
    list.emplace_back("jube_step_cycles", step->cycles.value);
  }
  return list;
}

PackageValues::PackageValues(const RunInfo& run, const Step& step, const WorkPackage& package,
                             const TextPool& pool, const Expander& expander,
                             const std::vector<ParentName>& parents, const std::string& work_dir,
                             const char* status)
    : package_(package), pool_(pool), builtins_(run_builtins(run, &step)) {
  for (const Binding& binding : package.point.bindings) {
    if (expander.definition(binding).exported) {
      exported_.emplace_back(pool[binding.name], pool[binding.value]);
    }
  }
  builtins_.emplace_back("jube_wp_id", std::to_string(package.id));
  builtins_.emplace_back("jube_wp_padid", padded_id(package.id));
  builtins_.emplace_back("jube_wp_status", status);
  builtins_.emplace_back("jube_wp_iteration", std::to_string(package.iteration));
  builtins_.emplace_back("jube_wp_cycle", std::to_string(package.cycle));
  builtins_.emplace_back("jube_wp_relpath", work_dir);
  builtins_.emplace_back("jube_wp_abspath", absolute_path(work_dir));
  for (const ParentName& parent : parents) {
    builtins_.emplace_back("jube_wp_parent_" + parent.step + "_id", std::to_string(parent.id));
  }
  builtins_.emplace_back("jube_wp_envstr", environment_lines(exported_));
  builtins_.emplace_back("jube_wp_envlist", environment_names(exported_));
  added_ = kind_values(step, [this](std::string_view name) { return find(name); });
}

const std::string* PackageValues::find(std::string_view name) const {
  if (const std::string* value = find_in(added_, name)) return value;
  for (const Binding& binding : package_.point.bindings) {
    if (pool_[binding.name] == name) return &pool_[binding.value];
  }
  return find_in(builtins_, name);
}

Lookup PackageValues::lookup() const {
  return [this](std::string_view name) { return find(name); };
}

void PackageValues::drop_package_builtins() {
  builtins_.erase(
      std::remove_if(builtins_.begin(), builtins_.end(),
                     [](const auto& entry) { return starts_with(entry.first, "jube_wp_"); }),
      builtins_.end());
}

std::vector<std::string> used_sets(const Step& step, const Lookup& lookup) {
  std::vector<std::string> names;
  for (const Text& use : step.use) {
    for (std::string& name : split_strip(substitute(use.value, lookup), ",")) {
      if (!name.empty()) names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace tally
