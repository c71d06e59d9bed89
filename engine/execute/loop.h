// The loop over a run's workpackages, for one call of execute(). It takes the next one from the
// queue, starts it, waits for processes and jobs, passes each end on, and stops on request
// (loop_interrupts.cc).
//
//   queue -> starter -> task -> finisher -> queue      the parts of this folder
//                        |-> shared operations         once for a step's workpackages
//                        |-> setup sharing             once for equal set-ups
//                        `-> jobs/submission           at a scheduler
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/execute/execute.h"
#include "engine/execute/finisher.h"
#include "engine/execute/graph.h"
#include "engine/execute/jobs/submission.h"
#include "engine/execute/queue.h"
#include "engine/execute/quiet_check.h"
#include "engine/execute/run_context.h"
#include "engine/execute/setup_sharing.h"
#include "engine/execute/shared_operations.h"
#include "engine/execute/starter.h"
#include "engine/execute/status_line.h"
#include "engine/execute/step_table.h"
#include "engine/execute/task.h"
#include "engine/workspace/left_behind.h"
#include "engine/workspace/run_log.h"

namespace tally {

class RunLoop {
 public:
  RunLoop(Run& run, const Settings& settings, const Parts& parts, ProcessRunner& processes,
          Scheduler& scheduler);

  Status run(RunSummary* summary);

 private:
  using Clock = std::chrono::steady_clock;
  Status resume();
  Status end_earlier_attempts(std::vector<Unfinished> workpackages);
  Unfinished unfinished(const WorkpackageNode& workpackage) const;
  Status turns();
  Status start_next();
  Status advance(Task& task);
  Status run_shared(Task& task);
  Status after_shared(Task& task);
  Status wait();
  Clock::time_point wait_until() const;
  Status process_ended(const ProcessResult& result);
  Status take_job_ends();
  Status stop_jobs(bool* stop);
  Status stop_children();
  Status put_back(const std::vector<int>& workpackages, Reason reason);
  Status leave_gathered(Status status);
  void show();
  void tell_of_trouble();
  std::vector<std::string> table_of_steps();
  void sum_up(RunSummary* summary) const;

  const Settings& settings_;
  ProcessRunner& processes_;
  std::string run_dir_;
  RunLog log_;
  WorkpackageGraph graph_;
  StatusLine status_line_;
  StepTable step_table_;
  RunContext context_;
  Tasks tasks_;
  Queue queue_;
  SharedOperations shared_;
  SetupSharing setups_;
  JobSubmission jobs_;
  Starter starter_;
  Finisher finisher_;
  RepeatStop repeat_stop_;
  QuietCheck quiet_check_;

  std::unordered_map<int, int> by_pid_;             // the workpackage of each running process
  std::optional<Clock::time_point> trouble_since_;  // the scheduler does not answer
  bool trouble_told_ = false;
  int answered_ = 0;  // requests to stop that were withdrawn
  bool interrupted_ = false;
};

}  // namespace tally
