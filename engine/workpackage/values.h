// Everything a workpackage's texts may name: its parameters, JUBE's built-in variables, and what
// its kind of step adds. The dry run, the run, generated scripts, results and --logs all ask this
// object, so that a name means the same everywhere.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/path_text.h"
#include "engine/expand/expand.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// A parent as its children's built-ins name it.
struct ParentName {
  std::string step;
  int id = 0;
};

// A workpackage as a journal keeps it: texts, without an Expander that knows their definitions.
struct StoredParameters {
  NamedValues values;
  std::function<bool(const std::string& name)> exported;
  std::vector<ParentName> parents;
  std::string work_dir, absolute_work_dir;
  const NamedValues* common = nullptr;  // run_builtins(), made once a step
};

// What the built-ins of a run say.
RunInfo run_info(const Benchmark& benchmark, int id, const std::string& run_dir,
                 const std::string& start);

// jube_benchmark_* and, with a step, jube_step_*.
NamedValues run_builtins(const RunInfo& run, const Step* step);

class WorkpackageValues {
 public:
  // Of a workpackage that is planned or run here. `status`: RUNNING, DONE or ERROR. The arguments
  // must outlive the object.
  WorkpackageValues(const Benchmark& benchmark, const Expander& expander,
                    const Workpackage& workpackage, const char* status = "RUNNING");
  // Of one that a journal keeps. `step` null: the input file does not have the step any more.
  WorkpackageValues(const Step* step, const Workpackage& workpackage, StoredParameters stored,
                    const char* status);

  // The value of a name, or null.
  const std::string* find(std::string_view name) const;
  Lookup lookup() const;
  std::string apply(std::string_view text) const { return substitute(text, lookup()); }
  std::string apply(const Text& text) const { return apply(text.value); }
  // Of a path: with the environment's variables and `~`, too.
  std::string path(std::string_view text) const { return expand_path(apply(text)); }
  std::string path(const Text& text) const { return path(text.value); }

  // jube_benchmark_*, jube_step_*, jube_wp_*: what Expander::finish() and update() want.
  const NamedValues& builtins() const;
  // What the kind of step adds (nodes, launch...), in force before a parameter of the same name.
  const NamedValues& added() const { return added_; }
  // Exported parameters, "NAME", "value".
  const NamedValues& exported() const { return exported_; }
  // Every name with the value in force, each once: parameters in their order, built-ins, added
  // ones.
  NamedValues all() const;
  // For a shared operation: no single workpackage's built-ins.
  void drop_workpackage_builtins();

 private:
  const std::string* parameter(std::string_view name) const;

  const Workpackage& workpackage_;
  const char* status_;
  // Where the values come from: a plan or a run, or else a journal.
  const Benchmark* benchmark_ = nullptr;
  const Expander* expander_ = nullptr;
  StoredParameters stored_;
  NamedValues added_, exported_;
  bool of_workpackage_ = true;  // with jube_wp_*
  // Made when they are first asked for: most texts name none.
  mutable NamedValues builtins_;
};

// The names of the sets a step uses at this point, in file order, $parameters resolved, commas
// split.
std::vector<std::string> used_sets(const Step& step, const Lookup& lookup);

// `active` of a step, an operation or a file set's entry, after substitution: true, false or a
// Python expression. An error text when it is none of these.
Status evaluate_active(const std::string& text, Evaluator& evaluator, bool* active);
// The Python expression that `active` stands for.
std::string active_expression(std::string_view text);

}  // namespace tally
