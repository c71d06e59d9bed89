#include "engine/cli/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "engine/base/text.h"
#include "engine/cli/input.h"
#include "engine/execute/package_values.h"
#include "engine/execute/run_directory.h"
#include "steps/kinds.h"

namespace tally {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void add_sets(const Benchmark& benchmark, const Step& step, std::vector<const Step*>& seen,
              std::map<std::string, const Parameter*>& out) {
  if (std::find(seen.begin(), seen.end(), &step) != seen.end()) return;
  seen.push_back(&step);
  for (const Text& use : step.use) {
    auto set = benchmark.parameter_sets.find(use.value);
    if (set == benchmark.parameter_sets.end()) continue;
    for (const Parameter& parameter : set->second.parameters) {
      out.try_emplace(parameter.name.value, &parameter);
    }
  }
  for (const Text& parent : step.depend) {
    if (const Step* found = benchmark.find_step(parent.value)) {
      add_sets(benchmark, *found, seen, out);
    }
  }
}

const char* status_of(State state) {
  if (finished_well(state)) return "DONE";
  return state == State::failed || state == State::lost ? "ERROR" : "RUNNING";
}

// jube_wp_envstr and jube_wp_envlist: the exported parameters.
void add_environment(const std::map<std::string, const Parameter*>& definitions,
                     PackageView& view) {
  std::vector<std::pair<std::string, std::string>> exported;
  for (const auto& [name, value] : view.values) {
    auto found = definitions.find(name);
    if (found != definitions.end() && found->second->exported) exported.emplace_back(name, value);
  }
  std::sort(exported.begin(), exported.end(),
            [](const auto& a, const auto& b) { return lower(a.first) < lower(b.first); });
  std::string text;
  std::vector<std::string> names;
  for (const auto& [name, value] : exported) {
    text += fmt::format("export {}=\"{}\"\n", name, value);
    names.push_back(name);
  }
  view.values.emplace_back("jube_wp_envstr", text);
  view.values.emplace_back("jube_wp_envlist", join(names, ","));
}

void add_types(const std::map<std::string, const Parameter*>& definitions, PackageView& view) {
  for (const auto& [name, value] : view.values) {
    auto found = definitions.find(name);
    if (found == definitions.end()) continue;
    if (found->second->type != ValueType::string) {
      view.types.emplace_back(name, found->second->type);
    }
    if (!found->second->unit.empty()) view.units.emplace_back(name, found->second->unit);
  }
}

// What `resources:` and the other keys of a kind of step name, for columns that show it.
void add_kind_values(const Step& step, PackageView& view) {
  auto lookup = [&](std::string_view name) -> const std::string* {
    for (const auto& [key, value] : view.values) {
      if (key == name) return &value;
    }
    return nullptr;
  };
  for (const auto& [name, value] : kind_values(step, lookup)) {
    if (!value.empty() && lookup(name) == nullptr) view.values.emplace_back(name, value);
  }
}

}  // namespace

std::map<std::string, const Parameter*> parameters_of(const Benchmark& benchmark,
                                                      const std::string& step) {
  std::map<std::string, const Parameter*> parameters;
  std::vector<const Step*> seen;
  if (const Step* found = benchmark.find_step(step)) add_sets(benchmark, *found, seen, parameters);
  // Sets whose name depends on a parameter ("use: $set") are only known at each point.
  for (const auto& [name, set] : benchmark.parameter_sets) {
    for (const Parameter& parameter : set.parameters) {
      parameters.try_emplace(parameter.name.value, &parameter);
    }
  }
  return parameters;
}

std::vector<PackageView> package_views(const Benchmark& benchmark, const Journal& journal,
                                       const std::string& run_dir) {
  const RunRecord& run = journal.run();
  RunInfo info = run_info(benchmark, run.id, run_dir, run.start);
  std::vector<Journal::Stored> stored = journal.packages();
  std::unordered_map<int, std::string> step_names;
  std::unordered_map<std::string, std::map<std::string, const Parameter*>> definitions;
  std::unordered_map<std::string, std::vector<std::pair<std::string, std::string>>> builtins;
  for (const Journal::Stored& package : stored) {
    step_names[package.package.id] = package.step;
    if (definitions.try_emplace(package.step).second) {
      definitions[package.step] = parameters_of(benchmark, package.step);
      builtins[package.step] = run_builtins(info, benchmark.find_step(package.step));
    }
  }
  std::vector<PackageView> views;
  views.reserve(stored.size());
  for (Journal::Stored& from : stored) {
    PackageView view;
    const WorkPackage& package = from.package;
    view.id = package.id;
    view.step = from.step;
    view.iteration = package.iteration;
    view.cycle = package.cycle;
    view.parents = package.parents;
    std::string shown =
        from.work_dir.empty() ? run_dir + "/" + from.directory + "/work" : from.work_dir;
    view.work_dir = absolute_path(shown);
    const Step* step = benchmark.find_step(from.step);
    // What waits for its done_file has written something. JUBE shows what has not ended, or not
    // even begun, too: with as many values as there are.
    const bool plain = step == nullptr || step->kind == StepKind::plain;
    view.finished = finished_well(package.state) || package.state == State::failed ||
                    package.state == State::waiting || (plain && package.state != State::lost);
    if (package.state == State::failed || package.state == State::expected) {
      view.notes.push_back(fmt::format("workpackage {} ({}) {}: {}", package.id, from.step,
                                       state_name(package.state), package.note));
    }
    view.values = std::move(from.parameters);
    const auto& known = definitions[from.step];
    add_types(known, view);
    add_environment(known, view);
    const auto& common = builtins[from.step];
    view.values.insert(view.values.end(), common.begin(), common.end());
    view.values.emplace_back("jube_wp_id", std::to_string(package.id));
    view.values.emplace_back("jube_wp_padid", padded_id(package.id));
    view.values.emplace_back("jube_wp_status", status_of(package.state));
    view.values.emplace_back("jube_wp_iteration", std::to_string(package.iteration));
    view.values.emplace_back("jube_wp_cycle", std::to_string(package.cycle));
    view.values.emplace_back("jube_wp_relpath", shown);
    view.values.emplace_back("jube_wp_abspath", view.work_dir);
    if (step != nullptr && step->kind != StepKind::plain) add_kind_values(*step, view);
    for (int parent : package.parents) {
      view.values.emplace_back(fmt::format("jube_wp_parent_{}_id", step_names[parent]),
                               std::to_string(parent));
    }
    views.push_back(std::move(view));
  }
  return views;
}

PackageView planned_view(const Benchmark& benchmark, const Expander& expander, const TextPool& pool,
                         const WorkPackage& package, const std::string& log) {
  const Step& step = benchmark.steps[static_cast<size_t>(package.step)];
  const std::string log_path = absolute_path(log);
  const std::string work_dir = log_path.substr(0, log_path.rfind('/'));
  PackageView view;
  view.id = package.id;
  view.step = step.name.value;
  view.iteration = package.iteration;
  view.work_dir = work_dir;
  view.finished = true;
  view.log = log_path;
  PackageValues values(expander.run(), step, package, pool, expander, {}, work_dir, "DONE");
  for (const Binding& binding : package.point.bindings) {
    view.values.emplace_back(pool[binding.name], pool[binding.value]);
  }
  add_types(parameters_of(benchmark, view.step), view);
  view.values.insert(view.values.end(), values.builtins().begin(), values.builtins().end());
  if (step.kind != StepKind::plain) add_kind_values(step, view);
  return view;
}

}  // namespace tally
