// Assigns logs of jobs that a person submitted by hand to workpackages.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/read/views.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Why logs cannot be read: the problem, the remedy, and lines that show it.
struct LogProblem {
  std::string message, hint;
  std::vector<std::string> lines;
};

// Plans the benchmark as a run would, and assigns the logs to the workpackages of the analysed
// step, in order. `logs` are files, or the folders that hold them. Returns false with errors in
// `diagnostics`, or else with *problem.
bool log_views(const Benchmark& benchmark, const std::vector<std::string>& logs,
               const std::set<std::string>& tags, Evaluator& evaluator, Diagnostics& diagnostics,
               std::vector<WorkpackageView>* views, LogProblem* problem);

}  // namespace tally
