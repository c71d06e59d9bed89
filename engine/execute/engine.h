// The loop over a run's workpackages. Holds what one call of execute() needs; nothing outlives it.
// execute.cc: from the queue to the end of the run; ends.cc: what the end of a workpackage leads
// to; sharing.cc: work done once for several; submission.cc: jobs of a scheduler.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/execute/execute.h"
#include "engine/execute/graph.h"
#include "engine/execute/job_packs.h"
#include "engine/execute/jobs.h"
#include "engine/execute/left_behind.h"
#include "engine/execute/run_directory.h"
#include "engine/execute/run_log.h"
#include "engine/execute/setup_reuse.h"
#include "engine/execute/slots.h"
#include "engine/execute/status_line.h"
#include "engine/execute/task.h"

namespace tally {

class Engine {
 public:
  Engine(const Benchmark& benchmark, Expander& expander, TextPool& pool, Journal& journal,
         const std::string& run_dir, const RunOptions& options, Evaluator& evaluator,
         ProcessRunner& processes, Scheduler& scheduler);

  Status run(RunSummary* summary);

 private:
  using Clock = std::chrono::steady_clock;
  Status resume();
  Unfinished unfinished(const WorkpackageNode& workpackage) const;
  Status fill_slots();
  Status start(int id);
  Status advance(Task& task);
  Status ended(Task& task);
  Status ended_well(Task& task);
  Status ended_badly(Task& task);
  Status queue_created(const std::vector<int>& created);
  Status wait();
  Status submit(Task& task);
  Status submit_packs();
  static void take_name(const std::string& name, Job* job);
  bool began(const Task& task) const;
  Status take_job_ends();
  Status job_ended(const JobEnd& end);
  Status put_back(const std::vector<int>& workpackages, Reason reason);
  Status stop_jobs(bool* stop);
  Status gather_shared(Task& task);
  Status run_shared(const std::vector<int>& group);
  Status release_complete_groups();
  Status after_shared(Task& task);
  Status share_setup(Task& task, bool* taken);
  bool link_to_work(Task& task, const std::string& work, const std::string& of);
  Status record_setup(int id);
  void publish_setup(int id);
  Status restore_setups();
  void release_setup(int id, bool well);
  Status stop_children();
  Status set_state(int id, State state, Reason reason);
  void mark(int id, const char* name, const std::string& text);
  void report_end(const Task& task);
  void print_output(const Task& task);
  std::vector<JobView> running_views() const;
  void show();
  void count(RunSummary* summary) const;
  bool may_start() const {
    return !interrupted_ && !(options_.exit_on_error && failed_ > failed_before_);
  }
  std::string job_name(int id) const;
  JobMarks job_marks(const Task& task) const;

  const Benchmark& benchmark_;
  Journal& journal_;
  const RunOptions& options_;
  ProcessRunner& processes_;
  RunLog log_;
  WorkpackageGraph graph_;
  JobFollower jobs_;
  JobPacks packs_;
  Slots slots_;
  TaskContext context_;
  StatusLine status_line_;
  std::string run_dir_;
  SetupReuse reuse_;

  std::unordered_map<int, std::unique_ptr<Task>> tasks_;  // by workpackage
  std::unordered_map<int, int> by_pid_;                   // workpackage
  // Workpackages that stand before a shared operation, by step, cycle and operation.
  std::map<std::pair<int, std::pair<int, int>>, std::vector<int>> gathered_;
  std::map<int, std::vector<int>> shared_groups_;  // by the workpackage that runs the operation
  std::vector<int> open_of_step_;                  // workpackages not ended
  int done_ = 0, failed_ = 0, waiting_ = 0, lost_ = 0;
  int failed_before_ = 0;         // of failed_, when the run was continued
  std::map<int, int> resubmits_;  // how often the platform allows it, by workpackage
  bool again_ = false;            // the task that ended now is to be submitted again
  int answered_ = 0;              // requests to stop that were taken back
  int last_started_ = -1;
  bool interrupted_ = false;
};

}  // namespace tally
