// The plan of a run, computed before anything is written: workpackages, jobs and scripts.
// plan_print.cc prints it.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/expand.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// The workpackages of the whole benchmark if every step succeeds. The ids are those of a sequential
// run.
struct Plan {
  const Benchmark* benchmark = nullptr;
  std::vector<Workpackage> workpackages;
  std::vector<Excluded> excluded;
  // Facts that only a run can establish (a parameter read from a parent's output), one sentence
  // each.
  std::vector<std::string> unknown;
  // The items that an evaluator that computes nothing left out ("parameter 'x'"), and the
  // workpackages of which it is not known whether they will be there.
  std::set<std::string> not_computed;
  std::set<int> in_doubt;
  // How many of the first workpackages a run with the same expander can take as they are
  // (Run::start_with()): those of the steps without `depend`, or none.
  size_t first = 0;
  int points = 0;   // workpackages before iterations and repetitions
  int repeats = 1;  // the largest `repeat` of a step
};

struct PlanPrint {
  bool parameters = true;  // list the varying parameters of each workpackage
  // Parameters that are the platform's, too, and values as they are. Otherwise only the user's, and
  // paths from the current folder.
  bool everything = false;
  size_t most = 20;    // workpackages listed; the rest is only counted
  int script_of = -1;  // if >= 0, print only this workpackage's generated files, exactly
  // Generates these files: names (relative to the work directory) and bytes. It uses the functions
  // of the run itself, so that a dry run shows what a run writes.
  std::function<std::vector<std::pair<std::string, std::string>>(const Workpackage&)> scripts;
  std::map<int, std::string> remarks;  // by workpackage, appended to its line
};

Plan make_plan(const Benchmark& benchmark, Expander& expander, Diagnostics& diagnostics);

// Prints the plan. It starts with the totals (workpackages, jobs, node-hours) and the parameters
// that are the same everywhere. Then each workpackage follows with its parents, its job script and
// the parameters that vary within its step. Excluded points are listed with their rule. The same
// plan always gives the same bytes.
void print_plan(const Plan& plan, const Expander& expander, const TextPool& pool,
                const PlanPrint& options, std::ostream& out);

}  // namespace tally
