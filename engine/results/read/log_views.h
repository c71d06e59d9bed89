// Assigns logs of jobs that a person submitted by hand to workpackages.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/results/read/result_context.h"
#include "engine/results/read/views.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Why logs cannot be read: the problem, the remedy, and lines that show it.
struct LogProblem {
  std::string message, hint;
  std::vector<std::string> lines;
};

// Plans the benchmark as a run would, and assigns the logs to the workpackages of the analysed
// step, in order. `logs` are files, or the folders that hold them. Returns false with errors in the
// context's diagnostics, or else with *problem.
bool log_views(const ResultContext& context, const std::vector<std::string>& logs,
               const std::set<std::string>& tags, std::vector<WorkpackageView>* views,
               LogProblem* problem);

}  // namespace tally
