// Seam to the job scheduler of a cluster. Tests use a fake for faults, the real one for truth.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

struct JobRequest {
  std::string name;       // unique to workpackage, run and try: a job can be found again by it
  std::string directory;  // where the script lies and the job starts
  std::string script;     // file name in `directory`
  std::string submit;     // the command that takes the script, as `sbatch --parsable`
  std::vector<std::string> environment;  // NAME=value, complete
};

// What the many states of a scheduler come to.
enum class JobState {
  queued,
  running,
  ok,         // ended, and well as far as the scheduler can see
  failed,     // ended by a failure, a limit or a person
  retryable,  // ended through no fault of its own: a lost node, preemption
  unheard,    // nothing could be learned this time
};
inline bool is_active(JobState state) {
  return state == JobState::queued || state == JobState::running;
}

struct JobReport {
  JobState state = JobState::unheard;
  std::string word;         // the scheduler's own for the state, as TIMEOUT
  std::string reason;       // why it waits, or why it ended so; may be empty
  std::string name;         // of the job: an id may be used again for another's job
  long long submitted = 0;  // seconds since 1970; 0: not known
  long long started = 0;
  int restarts = -1;  // how often it has been started anew (requeued); -1: not known
};

// Why a job was not taken.
enum class Refusal {
  none,
  transient,  // the scheduler could not be asked, or was too busy: try again
  full,       // a limit on how many jobs may be queued: try again when one has ended
  rejected,   // this job will not be taken
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Submits; on success *id is the job's. An error carries the scheduler's own words.
  virtual Status submit(const JobRequest& request, std::string* id, Refusal* refusal) = 0;
  // Jobs by their names, for those submitted just before the engine was killed: in one query. A
  // name that is not in the answer has no job. `since`: none of them was submitted before (seconds
  // since 1970).
  virtual Status find(const std::vector<std::string>& names, long long since,
                      std::map<std::string, std::string>* ids) = 0;
  // Reports of jobs, by id, in one query; an id that is not in the answer is unknown to the
  // scheduler. An error is no information: nothing may be concluded from it. May be called in a
  // thread of its own.
  virtual Status query(const std::vector<std::string>& ids, long long since,
                       std::map<std::string, JobReport>* reports) = 0;
  // All of them by one command.
  virtual Status cancel(const std::vector<std::string>& ids) = 0;
  // Ends a query that goes on in another thread; it fails.
  virtual void abandon_query() {}
};

// Slurm, through sbatch, sacct, squeue and scancel of PATH.
std::unique_ptr<Scheduler> make_slurm_scheduler();

// What Slurm's state comes to; only the first word counts ("CANCELLED by 1000").
JobState slurm_state(const std::string& text);

}  // namespace tally
