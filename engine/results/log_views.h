// Logs of jobs that a person submitted by hand, as the workpackages that they are of.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/views.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Why logs cannot be read: what is wrong, what to do about it, and lines that show it.
struct LogProblem {
  std::string message, hint;
  std::vector<std::string> lines;
};

// Plans the benchmark as a run would and takes the logs, files or the folders they lie in, as those
// of the analysed step's workpackages, in their order. False with errors in `diagnostics`, or else
// with *problem.
bool log_views(const Benchmark& benchmark, const std::vector<std::string>& logs,
               const std::set<std::string>& tags, Evaluator& evaluator, Diagnostics& diagnostics,
               std::vector<WorkpackageView>* views, LogProblem* problem);

}  // namespace tally
