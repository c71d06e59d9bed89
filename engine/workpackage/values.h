// Every name that a workpackage's texts may use: its parameters, JUBE's built-in variables, and the
// names that its kind of step adds. The dry run, the run, generated scripts, results and --logs all
// look names up here, so that a name means the same everywhere.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/variables.h"
#include "engine/expand/expand.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/builtin_names.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// A parent, as its children's built-in variables name it.
struct ParentName {
  std::string step;
  int id = 0;
};

// A workpackage as a journal stores it: texts only, without an Expander that knows the definitions.
struct StoredParameters {
  NamedValues values;
  // Null: the workflow has no such parameter any more.
  std::function<const Parameter*(const std::string& name)> definition;
  std::vector<ParentName> parents;
  std::string_view work_dir;            // absolute; must outlive the values
  const NamedValues* common = nullptr;  // run_builtins(), made once per step
  // The values of `common` that are wanted. Null: all()'s `keep` says it.
  const NamedValues* kept = nullptr;
  bool without_added = false;  // nobody asks for what the kind of step adds
};

// The data that the built-in variables of a run need.
RunInfo run_info(const Benchmark& benchmark, int id, const std::string& run_dir,
                 const std::string& start);

class WorkpackageValues {
 public:
  // For a workpackage that is planned or run in this process. `status` is RUNNING, DONE or ERROR.
  // The arguments must outlive the object.
  WorkpackageValues(const Benchmark& benchmark, const Expander& expander,
                    const Workpackage& workpackage, const char* status = "RUNNING");
  // For a workpackage from a journal. `step` is null if the input file no longer has the step.
  WorkpackageValues(const Step* step, const Workpackage& workpackage, StoredParameters&& stored,
                    const char* status);

  // The value of a name, or null if the name is unknown.
  const std::string* find(std::string_view name) const;
  // The value of a parameter itself, also if a key of the step hides it. Null: there is none.
  const std::string* parameter(std::string_view name) const;
  Lookup lookup() const;
  std::string apply(std::string_view text) const { return substitute(text, lookup()); }
  std::string apply(const Text& text) const { return apply(text.value); }
  // Like apply(), for a path: also expands the environment's variables and `~`.
  std::string path(std::string_view text) const { return expand_path(apply(text)); }
  std::string path(const Text& text) const { return path(text.value); }

  // The values of all built-in names, for Expander::finish() and update().
  const NamedValues& builtins() const;
  // Whether it is a parameter of the user, which nothing hides.
  bool is_users(std::string_view name) const;
  // Whether the value is of the step's kind or of a platform's file, and no parameter of the
  // workflow.
  bool is_for_jobs(std::string_view name) const;
  // Names that the kind of step adds (nodes, launch...). They hide parameters of the same name that
  // are not the user's.
  const NamedValues& added() const { return added_; }
  // Exported parameters, as pairs of name and value.
  const NamedValues& exported() const { return exported_; }
  // The parameters that are secrets (is_secret), as "NAME=value".
  std::vector<std::string> secrets() const;
  // Every name once, with the value in force: parameters in their order, then built-in variables,
  // then the names that the kind of step adds. `keep`, if given, says which names other than
  // parameters are wanted. The others are not made. It is true of the beginning of a wanted name,
  // too: where nothing that begins with jube_wp_ is wanted, it is asked once.
  using Keep = std::function<bool(std::string_view name)>;
  NamedValues all(const Keep& keep = {}) const;
  // Drops jube_wp_*. A shared operation does not belong to a single workpackage.
  void drop_workpackage_builtins();

 private:
  NamedValues kept_builtins(const Keep& keep) const;
  // The definition of one of the workpackage's parameters, or null.
  const Parameter* definition(std::string_view name) const;
  void note_users_names();
  void add_of_kind(const Step& step);
  void add_exported(const Parameter& definition, const std::string& name, const std::string& value);
  bool is_platforms(std::string_view name) const;
  const std::string* find_for_jobs(std::string_view name) const;
  // `work_dir`: absolute. `common`: those of run_builtins().
  void add_of_workpackage(const std::vector<ParentName>& parents, std::string_view work_dir,
                          const NamedValues* common, const Keep& keep, NamedValues& out) const;
  std::string value_of(Builtin name, std::string_view work_dir, const NamedValues* common) const;

  const Workpackage& workpackage_;
  const char* status_;
  // The values come either from a plan or run (these pointers are set) or from a journal (stored_).
  const Benchmark* benchmark_ = nullptr;
  const Expander* expander_ = nullptr;
  const Step* step_ = nullptr;      // null: nothing of its kind is added
  std::vector<std::string> users_;  // parameters of the user that have a platform's name
  bool any_moved_ = false;          // a platform's parameter has another name for them
  StoredParameters stored_;
  NamedValues added_, exported_;
  bool of_workpackage_ = true;  // jube_wp_* are included
  // Made on first use, because most texts name none of them.
  mutable NamedValues builtins_;
};

// The names of the sets that a step uses at this point, in file order. $parameters are resolved,
// and lists are split at commas.
std::vector<std::string> used_sets(const Step& step, const Lookup& lookup);

// Evaluates the `active` of a step, an operation or a file set's entry, after substitution. It is
// true, false or a Python expression; anything else is an error. An expression
// that the evaluator does not compute counts as true.
Status evaluate_active(const std::string& text, Evaluator& evaluator, bool* active);
// The Python expression that is equivalent to an `active` text.
std::string active_expression(std::string_view text);

}  // namespace tally
