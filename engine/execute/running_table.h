// The table above the status line: a run's jobs and what runs here.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "engine/execute/jobs/jobs.h"
#include "engine/execute/run_context.h"
#include "engine/execute/status_line.h"

namespace tally {

// `jobs` and the workpackages of the processes that run here, with the parameters that came of value
// lists, cut to the room that the status line has.
std::vector<std::string> running_table(const RunContext& context, std::vector<JobView> jobs,
                                       const std::unordered_map<int, int>& by_pid,
                                       const StatusLine& status_line);

}  // namespace tally
