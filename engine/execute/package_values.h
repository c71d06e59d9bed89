// Everything a workpackage's texts may name: its parameters, JUBE's built-in variables, and what
// its kind of step adds. The dry run and the real run use the same object.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/path_text.h"
#include "engine/expand/expand.h"
#include "engine/expand/substitute.h"
#include "engine/plan/workpackage.h"
#include "engine/workflow/workflow.h"

namespace tally {

// A parent as its children's built-ins name it.
struct ParentName {
  std::string step;
  int id = 0;
};

class PackageValues {
 public:
  // `run.rundir` is the run's folder; `work_dir` the package's work directory, both as the user
  // would write them (relative when outpath is). `status`: RUNNING, DONE or ERROR. The arguments
  // must outlive the object, `work_dir` and `parents` excepted.
  PackageValues(const RunInfo& run, const Step& step, const WorkPackage& package,
                const TextPool& pool, const Expander& expander,
                const std::vector<ParentName>& parents, const std::string& work_dir,
                const char* status = "RUNNING");

  // The value of a name, or null.
  const std::string* find(std::string_view name) const;
  Lookup lookup() const;
  std::string apply(std::string_view text) const { return substitute(text, lookup()); }
  std::string apply(const Text& text) const { return apply(text.value); }
  // Of a path: with the environment's variables and `~`, too.
  std::string path(std::string_view text) const { return expand_path(apply(text)); }
  std::string path(const Text& text) const { return path(text.value); }

  // jube_benchmark_*, jube_step_*, jube_wp_*: what Expander::finish() and update() want.
  const std::vector<std::pair<std::string, std::string>>& builtins() const { return builtins_; }
  // What the kind of step adds (nodes, launch...), in force before a parameter of the same name.
  const std::vector<std::pair<std::string, std::string>>& added() const { return added_; }
  // Exported parameters, "NAME", "value".
  const std::vector<std::pair<std::string, std::string>>& exported() const { return exported_; }
  // For a shared operation: no single workpackage's built-ins.
  void drop_package_builtins();

 private:
  const WorkPackage& package_;
  const TextPool& pool_;
  std::vector<std::pair<std::string, std::string>> builtins_, added_, exported_;
};

// The names of the sets a step uses at this point, in file order, $parameters resolved, commas
// split.
std::vector<std::string> used_sets(const Step& step, const Lookup& lookup);

// The built-ins that belong to the run and the step alone.
std::vector<std::pair<std::string, std::string>> run_builtins(const RunInfo& run, const Step* step);

}  // namespace tally
