// Workpackages that go to a scheduler: named, submitted alone or in a pack, followed to their end.
#pragma once

#include <map>
#include <vector>

#include "engine/base/status.h"
#include "engine/execute/jobs/job_packs.h"
#include "engine/execute/jobs/jobs.h"
#include "engine/execute/run_context.h"
#include "engine/execute/task.h"

namespace tally {

class JobSubmission {
 public:
  JobSubmission(RunContext& context, Scheduler& scheduler)
      : context_(context), follower_(scheduler, context.journal, context.log) {}

  // A task whose job script is ready. `taken` false: its platform cannot take it, the task failed.
  Status submit(Task& task, bool* taken);
  // Packs that are full, and all of them once nothing is left that could join one.
  Status submit_packs(bool all);
  // Which jobs ended, see JobFollower::turn().
  Status turn(std::vector<JobEnd>* ended) { return follower_.turn(ended); }
  // Ends the job's task. True: its job is to be submitted again, as the platform allows.
  bool take_end(const JobEnd& end, Task& task, bool may_submit);

  // What the loop asks of the jobs that are followed.
  size_t count() const { return follower_.count(); }
  size_t submitted() const { return follower_.ids().size(); }
  bool settled() const { return follower_.settled(); }
  JobFollower::Clock::time_point next() const { return follower_.next(); }
  std::vector<JobView> views() const { return follower_.views(); }
  // Workpackages of which nothing is in the scheduler's queue.
  std::vector<int> unsubmitted() const;
  // Cancels all that are in the queue; their workpackages.
  Status cancel_all(std::vector<int>* workpackages) { return follower_.cancel_all(workpackages); }
  // In the journal: they have no job any more.
  Status forget_names(const std::vector<int>& workpackages);

 private:
  void forget_earlier_try(const JobMarks& marks, bool tried);

  RunContext& context_;
  JobFollower follower_;
  JobPacks packs_;
  std::map<int, int> resubmits_;  // how often the platform allows it, by workpackage
};

}  // namespace tally
