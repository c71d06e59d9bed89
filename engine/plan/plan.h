// What a run would do, worked out before anything is written: workpackages, jobs, scripts.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/expand.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// The workpackages of the whole benchmark when every step succeeds. Ids are those a sequential run
// gives.
struct Plan {
  const Benchmark* benchmark = nullptr;
  std::vector<Workpackage> workpackages;
  std::vector<Excluded> excluded;
  // Things only a run can tell (a parameter read from a parent's output): one sentence each.
  std::vector<std::string> unknown;
  int points = 0;   // workpackages before iterations and repetitions
  int repeats = 1;  // the largest `repeat` of a step
};

struct PlanPrint {
  bool parameters = true;  // each workpackage's parameters that vary
  size_t most = 20;        // workpackages listed; the rest is counted
  int script_of = -1;      // print the exact bytes of this workpackage's generated files instead
  // Makes them: names (relative to the work directory) and bytes. Execution's own functions, so
  // that a dry run shows what a run writes.
  std::function<std::vector<std::pair<std::string, std::string>>(const Workpackage&)> scripts;
  std::map<int, std::string> remarks;  // by workpackage, put at the end of its line
};

Plan make_plan(const Benchmark& benchmark, Expander& expander, Diagnostics& diagnostics);

// Prints the plan: totals (workpackages, jobs, node-hours), the parameters that are the same
// everywhere, then each workpackage with those that vary within its step, its parents and job
// script; excluded points with their rule. The same plan gives the same bytes.
void print_plan(const Plan& plan, const Expander& expander, const TextPool& pool,
                const PlanPrint& options, std::ostream& out);

}  // namespace tally
