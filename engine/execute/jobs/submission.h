// Workpackages that run at a scheduler. They are named, submitted alone or in a pack, and followed
// to their end.
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
      : context_(context), follower_(scheduler, context.run.journal(), context.log) {}

  // Submits a task whose job script is ready. `taken` is false when its platform cannot take it;
  // the task has then failed.
  Status submit(Task& task, bool* taken);
  // Submits the packs that are full. Submits all packs once nothing is left that could join one.
  Status submit_packs(bool all);
  // Reports which jobs ended; see JobFollower::turn().
  Status turn(std::vector<JobEnd>* ended) { return follower_.turn(ended); }
  // Ends the job's task. Returns true when its job is to be submitted again, as the platform
  // allows.
  bool take_end(const JobEnd& end, Task& task, bool may_submit);

  // The loop's view of the jobs that are followed.
  size_t count() const { return follower_.count(); }
  size_t submitted() const { return follower_.ids().size(); }
  bool nothing_to_submit() const { return follower_.nothing_to_submit(); }
  JobFollower::Clock::time_point next() const { return follower_.next(); }
  std::vector<JobView> views() const { return follower_.views(); }
  const std::string& trouble() const { return follower_.trouble(); }
  // Workpackages that have no job in the scheduler's queue.
  std::vector<int> unsubmitted() const;
  // Cancels all jobs in the queue and returns their workpackages.
  Status cancel_all(std::vector<int>* workpackages) { return follower_.cancel_all(workpackages); }
  // Records in the journal that these workpackages have no job any more.
  Status forget_names(const std::vector<int>& workpackages);

 private:
  void forget_earlier_try(const JobMarks& marks, bool tried);
  Status write_environment(const JobMarks& marks, const EnvironmentChanges& changes) const;

  RunContext& context_;
  JobFollower follower_;
  JobPacks packs_;
  std::map<int, int> resubmits_;  // resubmissions that the platform allows, by workpackage
};

}  // namespace tally
