#include "engine/workpackage/values.h"

#include <strings.h>
#include <algorithm>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/text.h"

namespace tally {
namespace {

const std::string* find_in(const NamedValues& list, std::string_view name) {
  for (const auto& [key, value] : list) {
    if (key == name) return &value;
  }
  return nullptr;
}

// The value of jube_wp_envstr: lines of the form export NAME="value". As in JUBE, quotes are
// escaped and nothing else, so that a value may name variables of the shell. `exported` must be
// sorted.
std::string environment_lines(const NamedValues& exported) {
  std::string lines;
  for (const auto& [name, value] : exported) {
    lines += "export " + name + "=\"";
    for (const char c : value) {
      if (c == '"') lines += '\\';
      lines += c;
    }
    lines += "\"\n";
  }
  return lines;
}

std::string environment_names(const NamedValues& exported) {
  std::vector<std::string> written;
  written.reserve(exported.size());
  for (const auto& [name, value] : exported) written.push_back(name);
  return join(written, ",");
}

// Sorts by name without regard to case, as JUBE does.
NamedValues sorted_by_name(NamedValues list) {
  std::ranges::stable_sort(list, [](const auto& a, const auto& b) {
    return strcasecmp(a.first.c_str(), b.first.c_str()) < 0;
  });
  return list;
}

}  // namespace

RunInfo run_info(const Benchmark& benchmark, int id, const std::string& run_dir,
                 const std::string& start) {
  RunInfo info;
  info.id = id;
  info.name = benchmark.name.value;
  info.home = absolute_path(benchmark.file_path.empty() ? "." : benchmark.file_path);
  info.rundir = run_dir;
  info.start = start;
  return info;
}

WorkpackageValues::WorkpackageValues(const Benchmark& benchmark, const Expander& expander,
                                     const Workpackage& workpackage, const char* status)
    : workpackage_(workpackage), status_(status), benchmark_(&benchmark), expander_(&expander) {
  for (const Binding& binding : workpackage.point.bindings)
    add_exported(expander.definition(binding), expander.pool()[binding.name],
                 expander.pool()[binding.value]);
  add_of_kind(benchmark.steps[static_cast<size_t>(workpackage.step)]);
}

WorkpackageValues::WorkpackageValues(const Step* step, const Workpackage& workpackage,
                                     StoredParameters&& stored, const char* status)
    : workpackage_(workpackage), status_(status), stored_(std::move(stored)) {
  for (const auto& [name, value] : stored_.values) {
    if (const Parameter* parameter = definition(name)) add_exported(*parameter, name, value);
  }
  if (step != nullptr && !stored_.without_added) add_of_kind(*step);
}

// A program gets the user's value where the platform has one of the same name.
void WorkpackageValues::add_exported(const Parameter& definition, const std::string& name,
                                     const std::string& value) {
  if (!definition.exported) return;
  const std::string& variable = definition.name.value;
  const auto same =
      std::ranges::find_if(exported_, [&](const auto& entry) { return entry.first == variable; });
  if (same == exported_.end()) {
    exported_.emplace_back(variable, value);
  } else if (name == variable) {
    same->second = value;
  }
}

// Most workpackages have none of these names, which every value for jobs is asked for.
void WorkpackageValues::note_users_names() {
  const auto note = [this](const std::string& name, const Parameter* parameter) {
    if (starts_with(name, kPlatformPrefix)) any_moved_ = true;
    if (parameter != nullptr && parameter->owner == Owner::user) users_.push_back(name);
  };
  if (expander_ != nullptr) {
    for (const Binding& binding : workpackage_.point.bindings) {
      const std::string& name = expander_->pool()[binding.name];
      note(name, is_platforms(name) ? &expander_->definition(binding) : nullptr);
    }
  }
  for (const auto& [name, value] : stored_.values)
    note(name, is_platforms(name) ? definition(name) : nullptr);
}

void WorkpackageValues::add_of_kind(const Step& step) {
  step_ = &step;
  note_users_names();
  const Lookup written = [this](std::string_view name) -> const std::string* {
    const Parameter* found = definition(platform_name(name));
    if (found == nullptr) found = definition(name);
    if (found != nullptr && found->owner == Owner::user) return nullptr;
    return found != nullptr && found->mode == Mode::text ? &found->value.value : nullptr;
  };
  added_ = step.kinds->values(step, lookup(), written);
}

const Parameter* WorkpackageValues::definition(std::string_view name) const {
  if (expander_ == nullptr)
    return stored_.definition ? stored_.definition(std::string(name)) : nullptr;
  for (const Binding& binding : workpackage_.point.bindings) {
    if (expander_->pool()[binding.name] == name) return &expander_->definition(binding);
  }
  return nullptr;
}

const NamedValues& WorkpackageValues::builtins() const {
  if (!builtins_.empty()) return builtins_;
  if (benchmark_ == nullptr) {
    builtins_ = kept_builtins({});
    return builtins_;
  }
  std::vector<ParentName> parents;
  const Step& step = benchmark_->steps[static_cast<size_t>(workpackage_.step)];
  builtins_ = expander_->step_builtins(step);
  for (size_t i = 0; i < workpackage_.parents.size() && i < step.depend.size(); ++i) {
    parents.push_back({step.depend[i].value, workpackage_.parents[i]});
  }
  const std::string work_dir = absolute_path(
      work_dir_of(*benchmark_, *find_in(builtins_, "jube_benchmark_rundir"), workpackage_));
  const NamedValues common = builtins_;
  add_of_workpackage(parents, work_dir, &common, {}, builtins_);
  return builtins_;
}

// The built-in variables of a stored workpackage are made without the others.
NamedValues WorkpackageValues::kept_builtins(const Keep& keep) const {
  NamedValues kept;
  const bool made = benchmark_ != nullptr;
  const NamedValues* common = made ? &builtins() : stored_.common;
  if (!made && keep && stored_.kept != nullptr) {
    kept = *stored_.kept;
  } else if (common != nullptr) {
    for (const auto& entry : *common) {
      if (!keep || keep(entry.first)) kept.push_back(entry);
    }
  }
  if (!made) add_of_workpackage(stored_.parents, stored_.work_dir, stored_.common, keep, kept);
  return kept;
}

void WorkpackageValues::add_of_workpackage(const std::vector<ParentName>& parents,
                                           std::string_view work_dir, const NamedValues* common,
                                           const Keep& keep, NamedValues& out) const {
  if (!of_workpackage_ || (keep && !keep(kWorkpackagePrefix))) return;
  for (const BuiltinName& one : builtin_names()) {
    if (one.phase != BuiltinPhase::workpackage) continue;
    if (one.id == Builtin::wp_parent_id) {
      for (const ParentName& parent : parents) {
        const std::string name = parent_id_name(parent.step);
        if (!keep || keep(name)) out.emplace_back(name, std::to_string(parent.id));
      }
    } else if (!keep || keep(one.name)) {
      out.emplace_back(one.name, value_of(one.id, work_dir, common));
    }
  }
}

// The value of a name whose phase is workpackage, but of its parents' ids.
std::string WorkpackageValues::value_of(Builtin name, std::string_view work_dir,
                                        const NamedValues* common) const {
  const std::string* home = nullptr;
  switch (name) {
    case Builtin::wp_id:
      return std::to_string(workpackage_.id);
    case Builtin::wp_padid:
      return padded_id(workpackage_.id);
    case Builtin::wp_status:
      return status_;
    case Builtin::wp_iteration:
      return std::to_string(workpackage_.iteration);
    case Builtin::wp_cycle:
      return std::to_string(workpackage_.cycle);
    case Builtin::wp_relpath:
      if (common != nullptr) home = find_in(*common, "jube_benchmark_home");
      return home != nullptr ? relative_path(std::string(work_dir), *home) : std::string(work_dir);
    case Builtin::wp_abspath:
      return std::string(work_dir);
    case Builtin::wp_envstr:
      return environment_lines(sorted_by_name(exported_));
    case Builtin::wp_envlist:
      return environment_names(sorted_by_name(exported_));
    default:
      return {};  // of the run or the step
  }
}

const std::string* WorkpackageValues::parameter(std::string_view name) const {
  if (expander_ == nullptr) return find_in(stored_.values, name);
  const TextPool& pool = expander_->pool();
  for (const Binding& binding : workpackage_.point.bindings) {
    if (pool[binding.name] == name) return &pool[binding.value];
  }
  return nullptr;
}

bool WorkpackageValues::is_users(std::string_view name) const {
  const Parameter* found = definition(name);
  return found != nullptr && found->owner == Owner::user;
}

bool WorkpackageValues::is_for_jobs(std::string_view name) const {
  const Parameter* found = definition(name);
  return found != nullptr ? found->owner == Owner::platform : find_in(added_, name) != nullptr;
}

// Names that platforms define, beside those that the kind of step gives.
bool WorkpackageValues::is_platforms(std::string_view name) const {
  for (const char* one : {"scheduler", "submit", "site_mpi", "args_starter"})
    if (name == one) return true;
  if (step_ == nullptr) return false;
  const auto& names = step_->kinds->value_names();
  return std::binary_search(names.begin(), names.end(), name);
}

const std::string* WorkpackageValues::find_for_jobs(std::string_view name) const {
  if (const std::string* value = find_in(added_, name)) return value;
  if (const std::string* value = any_moved_ ? parameter(platform_name(name)) : nullptr)
    return value;
  if (contains(users_, name)) return &no_platform_value();
  return find(name);
}

const std::string* WorkpackageValues::find(std::string_view name) const {
  if (const std::string_view bare = without_platform_prefix(name); !bare.empty())
    return find_for_jobs(bare);
  if (const std::string* value = find_in(added_, name))
    return contains(users_, name) ? parameter(name) : value;
  if (const std::string* value = parameter(name)) return value;
  return starts_with(name, "jube_") ? find_in(builtins(), name) : nullptr;
}

std::vector<std::string> WorkpackageValues::secrets() const {
  std::vector<std::string> list;
  const auto add = [&](const Parameter* parameter, const std::string& value) {
    if (parameter != nullptr && is_secret(*parameter))
      list.push_back(secret_entry(*parameter, value));
  };
  if (expander_ != nullptr) {
    for (const Binding& binding : workpackage_.point.bindings)
      add(&expander_->definition(binding), expander_->pool()[binding.value]);
  }
  for (const auto& [name, value] : stored_.values) add(definition(name), value);
  return list;
}

Lookup WorkpackageValues::lookup() const {
  return [this](std::string_view name) { return find(name); };
}

NamedValues WorkpackageValues::all(const Keep& keep) const {
  NamedValues list;
  if (expander_ != nullptr) {
    const TextPool& pool = expander_->pool();
    for (const Binding& binding : workpackage_.point.bindings) {
      list.emplace_back(pool[binding.name], pool[binding.value]);
    }
  } else {
    list.reserve(stored_.values.size() + (stored_.kept != nullptr ? stored_.kept->size() : 0));
    list.insert(list.end(), stored_.values.begin(), stored_.values.end());
  }
  const size_t parameters = list.size();
  // A name that the kind of step adds hides the parameter, so the list shows what the commands see.
  for (auto& [name, value] : list) {
    const std::string* hiding = find_in(added_, name);
    if (hiding != nullptr && !is_users(name)) value = *hiding;
  }
  const auto is_parameter = [&](const std::string& name) {
    return std::any_of(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(parameters),
                       [&](const auto& entry) { return entry.first == name; });
  };
  const bool hides_builtins = std::ranges::any_of(
      list, [](const auto& entry) { return starts_with(entry.first, "jube_"); });
  for (auto& entry : kept_builtins(keep)) {
    if (!hides_builtins || !is_parameter(entry.first)) list.push_back(std::move(entry));
  }
  for (const auto& entry : added_) {
    if ((!keep || keep(entry.first)) && !is_parameter(entry.first)) list.push_back(entry);
  }
  return list;
}

void WorkpackageValues::drop_workpackage_builtins() {
  of_workpackage_ = false;
  builtins_.clear();
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

std::string active_expression(std::string_view text) {
  const std::string word(strip(text));
  if (word.empty() || word == "true") return "True";
  if (word == "false") return "False";
  return "bool(" + word + ")";
}

Status evaluate_active(const std::string& text, Evaluator& evaluator, bool* active) {
  const std::string_view word = strip(text);
  *active = word == "true" || word == "True" || word.empty();
  if (*active || word == "false" || word == "False") return Status::ok();
  const Evaluation result = evaluator.evaluate_one(Mode::python, active_expression(text));
  if (result.unknown) {
    *active = true;
    return Status::ok();
  }
  if (!result.ok) {
    return Status::error("active=\"" + text +
                         "\" is neither true, false nor a Python expression: " + result.error);
  }
  *active = result.value == "True";
  return Status::ok();
}

}  // namespace tally
