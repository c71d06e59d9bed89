// Seam to the job scheduler of a cluster. Tests use a fake for faults, the real one for truth.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

struct JobRequest {
  std::string name;       // unique to workpackage and run, so that a job can be found again by it
  std::string directory;  // where the script lies and the job starts
  std::string script;     // file name in `directory`
  std::string submit;     // the command that takes the script, as `sbatch --parsable`
  std::vector<std::string> environment;  // NAME=value, complete
};

// What the scheduler says of a job. Unknown is never a success.
enum class JobState { queued, running, ended, unknown };
struct JobReport {
  JobState state = JobState::unknown;
  std::string reason;  // in the scheduler's own words
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Submits; on success *id is the job's. An error carries the scheduler's own words; `transient`
  // tells whether trying again later makes sense.
  virtual Status submit(const JobRequest& request, std::string* id, bool* transient) = 0;
  // A job by its name, for one submitted just before the engine was killed: empty id when there is
  // none.
  virtual Status find(const std::string& name, std::string* id) = 0;
  // Reports of jobs, by id, in one query; an id that is not in the answer is unknown to the
  // scheduler. An error is no information: nothing may be concluded from it.
  virtual Status query(const std::vector<std::string>& ids,
                       std::map<std::string, JobReport>* reports) = 0;
  virtual Status cancel(const std::vector<std::string>& ids) = 0;
};

// Slurm, through sbatch, squeue and scancel of PATH.
std::unique_ptr<Scheduler> make_slurm_scheduler();

}  // namespace tally
