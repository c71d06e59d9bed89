#include "engine/workflow/builtin_names.h"

#include <algorithm>
#include <array>

#include "engine/workflow/step_kinds.h"

namespace tally {
namespace {

using Phase = BuiltinPhase;
constexpr ValueType kWhole = ValueType::integer;

constexpr std::array<BuiltinName, 19> kNames = {{
    {Builtin::benchmark_id, "jube_benchmark_id", Phase::run, kWhole},
    {Builtin::benchmark_padid, "jube_benchmark_padid", Phase::run},
    {Builtin::benchmark_name, "jube_benchmark_name", Phase::run},
    {Builtin::benchmark_home, "jube_benchmark_home", Phase::run},
    {Builtin::benchmark_rundir, "jube_benchmark_rundir", Phase::run},
    {Builtin::benchmark_start, "jube_benchmark_start", Phase::run},
    {Builtin::step_name, "jube_step_name", Phase::step},
    {Builtin::step_iterations, "jube_step_iterations", Phase::step, kWhole},
    {Builtin::step_cycles, "jube_step_cycles", Phase::step, kWhole},
    {Builtin::wp_id, "jube_wp_id", Phase::workpackage, kWhole},
    {Builtin::wp_padid, "jube_wp_padid", Phase::workpackage},
    {Builtin::wp_status, "jube_wp_status", Phase::workpackage},
    {Builtin::wp_iteration, "jube_wp_iteration", Phase::workpackage, kWhole},
    {Builtin::wp_cycle, "jube_wp_cycle", Phase::workpackage, kWhole},
    {Builtin::wp_relpath, "jube_wp_relpath", Phase::workpackage},
    {Builtin::wp_abspath, "jube_wp_abspath", Phase::workpackage},
    {Builtin::wp_parent_id, "jube_wp_parent_*_id", Phase::workpackage, kWhole},
    {Builtin::wp_envstr, "jube_wp_envstr", Phase::workpackage},
    {Builtin::wp_envlist, "jube_wp_envlist", Phase::workpackage},
}};
constexpr std::string_view kParentBegin = "jube_wp_parent_", kParentEnd = "_id";

}  // namespace

std::span<const BuiltinName> builtin_names() {
  return kNames;
}

std::vector<std::string> fixed_builtin_names() {
  std::vector<std::string> names;
  for (const BuiltinName& one : kNames) {
    if (one.id != Builtin::wp_parent_id) names.emplace_back(one.name);
  }
  return names;
}

const BuiltinName* find_builtin(std::string_view name) {
  const auto found =
      std::ranges::find_if(kNames, [&](const BuiltinName& one) { return one.name == name; });
  if (found != kNames.end()) return &*found;
  const bool parent = name.size() > kParentBegin.size() + kParentEnd.size() &&
                      name.substr(0, kParentBegin.size()) == kParentBegin &&
                      name.substr(name.size() - kParentEnd.size()) == kParentEnd;
  return parent ? &kNames[static_cast<size_t>(Builtin::wp_parent_id)] : nullptr;
}

std::string parent_id_name(std::string_view step) {
  return std::string(kParentBegin).append(step).append(kParentEnd);
}

std::set<std::string_view> kind_names(const Benchmark& benchmark) {
  std::set<std::string_view> names;
  for (const Step& step : benchmark.steps) {
    const auto& own = step.kinds->value_names();
    names.insert(own.begin(), own.end());
  }
  return names;
}

}  // namespace tally
