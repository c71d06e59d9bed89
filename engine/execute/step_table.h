// How far each step of a run is, as lines above the status line.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/execute/graph.h"
#include "engine/execute/jobs/jobs.h"
#include "engine/execute/run_context.h"

namespace tally {

struct StepProgress {
  std::string name;
  int total = 0, ended = 0, running = 0, waiting = 0, failed = 0;
  bool complete = false;  // no further workpackages will be made
  double left = -1;       // seconds, an estimate; less than 0: unknown
};

// "  compute  [######......]  12/22  2 running, 1 failed  ETA 01:10". At most `most` lines, those of
// steps that have something to do first. Lines are cut to `columns`.
std::vector<std::string> step_lines(const std::vector<StepProgress>& steps, size_t most,
                                    size_t columns);

// Estimates from what this session has done: `start` is when a step's first workpackage of this
// session was seen.
class StepTable {
 public:
  using Clock = std::chrono::steady_clock;
  std::vector<StepProgress> progress(WorkpackageGraph& graph, const std::vector<Step>& steps,
                                     Clock::time_point now);

 private:
  struct Begin {
    Clock::time_point time;
    int ended = 0;
  };
  std::map<size_t, Begin> begins_;
};

// The table above the status line. It shows a run's jobs and the workpackages that run on this
// machine.

// Lists `jobs` and the workpackages whose processes run here. Shows the parameters that come from
// value lists. The table has at most `most` rows and is as wide as the status line.
std::vector<std::string> running_table(const RunContext& context, std::vector<JobView> jobs,
                                       const std::unordered_map<int, int>& by_pid, size_t most);

}  // namespace tally
