// What the commands saw, what script writes, the rows of the tables.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <variant>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/cli/show_results.h"
#include "engine/plan/generated_files.h"
#include "tests/engine/workpackage/compare.h"

namespace tally::testing {
namespace {

bool is_reused(const Journal::Stored& stored) {
  return stored.workpackage.outcome.reason == Reason::reused;
}

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

}  // namespace

// ---- what the commands saw

bool Compare::same_commands() {
  return std::all_of(seen_.begin(), seen_.end(),
                     [this](const Seen& seen) { return same_command(seen); });
}

bool Compare::same_command(const Seen& seen) {
  const std::string folder = folder_of(seen.stdout_path);
  const std::vector<std::pair<std::string, std::string>> values =
      named_values(printed_by(seen.command));
  const std::string operation = values.empty() ? "" : values.front().second;
  const auto found = by_folder_.find(folder);
  if (found != by_folder_.end()) {
    const Finished& one = expected_[static_cast<size_t>(found->second)];
    size_t cycle = 0;
    for (const auto& [name, value] : values) {
      if (name == "jube_wp_cycle" && value.size() == 1) cycle = static_cast<size_t>(value[0] - '0');
    }
    const std::string where =
        "command " + operation + " of workpackage " + std::to_string(found->second);
    if (cycle >= one.by_cycle.size()) return differs(where + " runs in a cycle too many");
    if (!starts_with(seen.directory, one.by_cycle[cycle].at("jube_wp_abspath")))
      return differs(where + " runs in " + seen.directory);
    return same_named(where, seen, one.by_cycle[cycle]) && same_environment(where, seen, one);
  }
  // A shared operation sees the values of one of its step's workpackages.
  const std::string step = operation.substr(0, operation.find('.'));
  const Step* of = benchmark_.find_step(step);
  if (of == nullptr || folder != absolute_path(run_dir_ + "/" + step + "_" + of->shared)) {
    return differs("command " + operation + " writes to " + seen.stdout_path);
  }
  std::string first;
  for (const Finished& one : expected_) {
    if (!one.error.empty() || planned_.step_of(one.workpackage).name.value != step) continue;
    for (const ByName& expected : one.of_shared) {
      if (same_named("shared command " + operation, seen, expected)) return true;
      if (first.empty()) first = what_;
      what_.clear();
    }
  }
  return differs(first.empty() ? "a shared command of nobody" : first);
}

bool Compare::same_named(const std::string& where, const Seen& seen, const ByName& expected) {
  const Lookup lookup = [&](std::string_view name) -> const std::string* {
    const auto found = expected.find(std::string(name));
    return found == expected.end() ? nullptr : &found->second;
  };
  for (const auto& [name, value] : named_values(printed_by(seen.command))) {
    if (name == "op") continue;
    ++values_;
    const std::string wanted = substitute("${" + name + "}", lookup);
    if (value != wanted) {
      return differs(where + " was given " + name + " \"" + value + "\", the plan says \"" +
                     wanted + "\"");
    }
  }
  return true;
}

bool Compare::same_environment(const std::string& where, const Seen& seen,
                               const Finished& expected) {
  std::set<std::string> names{"DRAWN_ALL", "TALLY_PROPERTY", "TALLY_PROPERTY_FOLDER"};
  for (const auto& [set_name, set] : benchmark_.parameter_sets) {
    for (const Parameter& parameter : set.parameters) names.insert(parameter.name.value);
  }
  for (const Step& step : benchmark_.steps) names.insert("DRAWN_" + step.name.value);
  const Environment own = with_changes(current_environment(), expected.environment);
  ByName wanted, got;
  for (const std::string& name : names) {
    if (const auto value = own.find(name); value != own.end()) wanted[name] = value->second;
    if (const auto value = seen.environment.find(name); value != seen.environment.end()) {
      got[name] = value->second;
    }
  }
  return same_values("the environment of " + where, wanted, got);
}

// ---- script

bool Compare::same_files() {
  for (const Journal::Stored& stored : stored_) {
    const Finished& one = expected_[static_cast<size_t>(stored.workpackage.id)];
    if (!one.error.empty() || !finished_well(stored.workpackage.outcome.state) || is_reused(stored))
      continue;
    std::string folder;
    std::vector<FileBytes> files;
    // From the plan's own state, not from the finished one.
    const Workpackage& workpackage =
        planned_.workpackages()[static_cast<size_t>(stored.workpackage.id)];
    if (const Status s =
            generated_files(benchmark_, workpackage, planned_.expander(), &folder, &files);
        !s) {
      return differs("script of " + name_of(stored) + ": " + s.message());
    }
    if (folder != stored.directory) return differs("script writes " + folder);
    for (const FileBytes& file : files) {
      std::string bytes;
      const std::string work = one.by_cycle.front().at("jube_wp_abspath");
      ++values_;
      if (!read_file(absolute_path(file.path, work), &bytes)) {
        return differs(name_of(stored) + " has no " + file.path + ", script writes it");
      }
      if (bytes != file.bytes) {
        return differs(name_of(stored) + ": " + file.path + " is\n" + bytes + "script writes\n" +
                       file.bytes);
      }
    }
  }
  return true;
}

// ---- the rows of the tables

bool Compare::same_records() {
  Diagnostics diagnostics;
  const bool reduced = std::any_of(benchmark_.analysers.begin(), benchmark_.analysers.end(),
                                   [](const Analyser& analyser) { return analyser.reduce; });
  for (const Result& result : benchmark_.results) {
    for (const auto& output : result.outputs) {
      const auto* table = std::get_if<Table>(&output);
      if (table == nullptr) continue;
      for (const Column& column : table->columns) asked_for_.insert(column.name.value);
    }
    const Records records = result_records({benchmark_, evaluator_, diagnostics}, result, views_);
    for (const Record& record : records.rows) {
      if (!same_record(record, reduced)) return false;
    }
  }
  return true;
}

void Compare::add_ancestors(int id, std::set<int>& family) const {
  if (!family.insert(id).second) return;
  for (const int parent : expected_[static_cast<size_t>(id)].workpackage.parents) {
    add_ancestors(parent, family);
  }
}

bool Compare::same_record(const Record& record, bool reduced) {
  const Value* found = record.values.find("jube_wp_id");
  if (found == nullptr) return true;  // not asked for
  const auto id = static_cast<size_t>(strtol(found->str().c_str(), nullptr, 10));
  const std::string where = "the row of workpackage " + found->str();
  if (id >= views_.size()) return differs(where + ": there is none");
  if (!same_cell(where, views_[id], "", record)) return false;
  std::set<int> family;
  add_ancestors(static_cast<int>(id), family);
  std::map<std::string, int> of_step;
  for (const int member : family) ++of_step[views_[static_cast<size_t>(member)].step];
  for (const int member : family) {
    const WorkpackageView& view = views_[static_cast<size_t>(member)];
    if (of_step[view.step] == 1 && !same_cell(where, view, "_" + view.step, record)) return false;
  }
  for (size_t i = 0; i < record.values.all().size(); ++i) {
    const std::string& name = record.values.columns()->name(i);
    const Value& value = record.values.all()[i];
    if (reduced || !starts_with(name, "seen_") || value.none()) continue;
    if (!was_printed(where, name.substr(5), value.str(), family)) return false;
  }
  return true;
}

bool Compare::same_cell(const std::string& where, const WorkpackageView& view,
                        const std::string& suffix, const Record& record) {
  for (const auto& [name, value] : view.values) {
    const Value* found = record.values.find(name + suffix);
    if (found == nullptr) {
      if (asked_for_.count(name + suffix) != 0) return differs(where + " has no " + name + suffix);
      continue;
    }
    const bool typed = std::any_of(view.types.begin(), view.types.end(),
                                   [&, n = name](const auto& type) { return type.first == n; });
    ++values_;
    if (!typed && found->str() != value) {
      return differs(where + ": " + name + suffix + " is \"" + found->str() + "\", of info \"" +
                     value + "\"");
    }
  }
  return true;
}

// What a pattern found in a file is what a command of the workpackage, or of one that it depends
// on, was given.
bool Compare::was_printed(const std::string& where, const std::string& name,
                          const std::string& value, const std::set<int>& family) {
  for (const int member : family) {
    for (const ByName& expected : expected_[static_cast<size_t>(member)].by_cycle) {
      const Lookup lookup = [&](std::string_view wanted) -> const std::string* {
        const auto found = expected.find(std::string(wanted));
        return found == expected.end() ? nullptr : &found->second;
      };
      if (substitute("${" + name + "}", lookup) == value) return true;
    }
  }
  return differs(where + ": its file has " + name + " \"" + value + "\"");
}

}  // namespace tally::testing
