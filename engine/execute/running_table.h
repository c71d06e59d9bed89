// The table above the status line. It shows a run's jobs and the workpackages that run on this
// machine.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "engine/execute/jobs/jobs.h"
#include "engine/execute/run_context.h"

namespace tally {

// Lists `jobs` and the workpackages whose processes run here. Shows the parameters that come from
// value lists. The table has at most `most` rows and is as wide as the status line.
std::vector<std::string> running_table(const RunContext& context, std::vector<JobView> jobs,
                                       const std::unordered_map<int, int>& by_pid, size_t most);

}  // namespace tally
