// The views of a run's workpackages, or of logs. Internal to results/.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/expand/expand.h"
#include "engine/journal/journal.h"
#include "engine/results/read/workpackage_view.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

struct TextsFound;

// The context of each stage of results: the definitions, who evaluates, and where problems go.
// Refers to objects of the caller, which must outlive it.
struct ResultContext {
  const Benchmark& benchmark;
  Evaluator& evaluator;
  Diagnostics& diagnostics;
  // A column whose expression fails in each row is an error, as a pattern that matches nothing is.
  bool empty_column_is_error = false;
  // The list keeps texts of columns that need numbers until it is known which rows a table shows.
  // Null: they are reported at once.
  std::vector<TextsFound>* texts = nullptr;

  // The same with other diagnostics.
  ResultContext saying_to(Diagnostics& others) const {
    return {benchmark, evaluator, others, empty_column_is_error,
            &others == &diagnostics ? texts : nullptr};
  }
};

// The run's workpackages with their parameters, types, units and built-ins. `finished` includes
// failed workpackages, as in JUBE's tables. A note says which failed and why. Without
// `all_builtins` the views have only those of JUBE's variables that the benchmark's results name,
// which saves most of the memory of a large run.
Status workpackage_views(const Benchmark& benchmark, const Journal& journal,
                         const std::string& run_dir, std::vector<WorkpackageView>* views,
                         bool all_builtins = false);

// Whether a result shows what jobs used: how long they ran, their energy or memory.
bool shows_job_use(const Benchmark& benchmark);

// A planned workpackage that did not run here, with the log of a job that a person submitted by
// hand. All values of its point must be final (finish_planned()).
WorkpackageView planned_view(const Benchmark& benchmark, const Expander& expander,
                             const Workpackage& workpackage, const std::string& log);

// The definitions of a workpackage's parameters, by name. If two sets have the same name, these are
// the definitions that the workpackage was made from. If the workflow no longer has them (`-u`),
// these are the definitions by that name in the sets of its step and of the steps before.
using DefinitionsByName = std::map<std::string, const Parameter*>;
DefinitionsByName definitions_of(const Benchmark& benchmark, const Journal::Stored& stored);

// Why logs cannot be read: the problem, the remedy, and lines that show it.
struct LogProblem {
  std::string message, hint;
  std::vector<std::string> lines;
};

// Plans the benchmark as a run would, and assigns the logs of jobs that a person submitted by hand
// to the workpackages of the analysed step, in order. `logs` are files, or the folders that hold
// them. Returns false with errors in the context's diagnostics, or else with *problem.
bool log_views(const ResultContext& context, const std::vector<std::string>& logs,
               const std::set<std::string>& tags, std::vector<WorkpackageView>* views,
               LogProblem* problem);

}  // namespace tally
