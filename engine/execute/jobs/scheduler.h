// Interface to the job scheduler of a cluster. Tests use a fake to inject faults and the real one
// to check the behaviour.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/workpackage/measured.h"

namespace tally {

class Journal;
struct CommandResult;
struct SchedulerTable;

struct JobRequest {
  // Unique for each workpackage, run and attempt, so that the job can be found by it.
  std::string name;
  std::string directory;                 // folder of the script, in which the job starts
  std::string script;                    // file name in `directory`
  std::string submit;                    // the submit command, such as `sbatch --parsable`
  std::vector<std::string> environment;  // NAME=value, complete
};

// A job to cancel, or whose use is asked for. Its id alone may be another job's: of one that was
// submitted after a crash of the controller, or of one that a site's wrapper named in what it printed.
struct NamedJob {
  std::string id;  // to cancel; empty: every job of the name
  std::string name;
};

// A scheduler's many states are reduced to these.
enum class JobState {
  queued,
  running,
  ok,         // ended, without an error that the scheduler can see
  failed,     // ended by a failure, a limit or a person
  retryable,  // ended for a reason outside the job: a lost node, preemption
  unheard,    // nothing could be learned this time
};
inline bool is_active(JobState state) {
  return state == JobState::queued || state == JobState::running;
}

struct JobReport {
  JobState state = JobState::unheard;
  std::string word;         // the scheduler's own state, such as TIMEOUT
  std::string reason;       // why it waits, or why it ended; may be empty
  std::string name;         // of the job; needed because ids may be reused for another job
  long long submitted = 0;  // seconds since 1970; 0: not known
  long long started = 0;
  int restarts = -1;       // how often it has been requeued; -1: unknown
  std::string nodes;       // on which it runs or ran: "node[1-4]"; empty: unknown
  bool stuck = false;      // it waits for a reason that will not pass
  bool preempted = false;  // other jobs take its nodes. Once it has ended, its state may be any
};

// Why the scheduler did not accept a job.
enum class Refusal {
  none,
  transient,  // the scheduler was unreachable or too busy: try again
  full,       // a limit on queued jobs was reached: try again when one has ended
  failed,     // the submission failed, but the scheduler may have the job. Without one: rejected
  rejected,   // this job was not submitted and will never be accepted
};

// A partition or queue in the scheduler's own words. Empty: it does not say it.
struct QueueFacts {
  std::string name, nodes, cpus, memory, resources, limit, state;
  bool is_default = false;
};
// A scheduler's word on its cluster, for the file that describes it.
struct SiteFacts {
  std::string cluster;  // its name; may be empty
  std::string version;  // "slurm-wlm 22.05.8"
  std::vector<QueueFacts> queues;
  std::vector<std::string> accounts;  // that may be charged
  std::vector<std::string> mpi;       // kinds of MPI that its launcher knows
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Submits a job. On success *id is the job's id. An error carries the scheduler's own message.
  virtual Status submit(const JobRequest& request, std::string* id, Refusal* refusal) = 0;
  // Finds jobs by name in one query, for jobs submitted just before the engine was killed. A name
  // that is missing from the answer has no job. `since`: seconds since 1970; none of the jobs was
  // submitted earlier.
  virtual Status find(const std::vector<std::string>& names, long long since,
                      std::map<std::string, std::string>* ids) = 0;
  // Reports on jobs by id, in one query. An id that is missing from the answer is unknown to the
  // scheduler. An error carries no information about the jobs. May be called in a separate thread.
  virtual Status query(const std::vector<std::string>& ids, long long since,
                       std::map<std::string, JobReport>* reports) = 0;
  // Reports what ended jobs used, by id. An id that is missing from the answer is unknown to the
  // scheduler. The use of a job with the id and another name is not reported; JobUse::why then says
  // so. `since`: as for query().
  virtual Status usage(const std::vector<NamedJob>& jobs, long long since,
                       std::map<std::string, JobUse>* uses) {
    (void)jobs, (void)since, (void)uses;
    return Status::error("this scheduler keeps no records of jobs");
  }
  // Describes the scheduler for people: a name and a text each. The status says why it cannot be
  // used from here.
  virtual Status describe(std::vector<std::pair<std::string, std::string>>* facts) {
    facts->clear();
    return Status::error("this scheduler does not describe itself");
  }
  // Asks for its queues and the like.
  virtual Status site(SiteFacts* facts) {
    *facts = {};
    return Status::error("this scheduler does not describe itself");
  }
  // Cancels, with one command, those of these jobs that wait or run. Says in `cancelled` which ids
  // they have: a job that has ended, or whose id is another job's, is not among them.
  virtual Status cancel(const std::vector<NamedJob>& jobs, std::vector<std::string>* cancelled) = 0;
  // The least time between two queries.
  virtual std::chrono::milliseconds pause() const { return std::chrono::milliseconds(1000); }
  // Ends a query that runs in another thread. The query fails.
  virtual void abandon_query() {}
};

// Asks the scheduler by a command of its own. `given_up`: ends the command.
CommandResult ask_scheduler(std::vector<std::string> words,
                            const std::vector<std::string>& environment,
                            const std::atomic<bool>* given_up);
// Reads lines "NAME|NODES|CPUS|MEMORY|RESOURCES|LIMIT|STATE". A star after the name: the default.
std::vector<QueueFacts> queues_of_lines(const std::string& text);
// "gpu: 4 nodes of 72 CPUs and 480000 MB, gpu:gh200:4, limit 1-00:00:00".
std::string queue_text(const QueueFacts& queue);

// How a submit command ended that failed. Only words of its own reject a job: a command that was
// ended, or that says nothing but the job's id, may have submitted it.
Refusal refusal_of_end(const CommandResult& result, bool has_id);

// The shipped schedulers whose programs are here, Slurm first. `problem`: of their tables.
struct SchedulerHere {
  std::string name;
  std::unique_ptr<Scheduler> scheduler;
};
std::vector<SchedulerHere> schedulers_here(const std::vector<std::string>& template_folders,
                                           Status* problem);

// Slurm's sbatch, sacct, squeue and scancel from PATH.
std::unique_ptr<Scheduler> make_slurm();
// The scheduler that a table describes.
std::unique_ptr<Scheduler> make_scheduler(std::shared_ptr<const SchedulerTable> table);
// The scheduler of a run's jobs: that of the table which the run keeps with its input, or Slurm.
// An error says why the table cannot be read.
Status scheduler_of(const Journal& journal, std::unique_ptr<Scheduler>* scheduler);
// Maps a Slurm state. Only the first word counts ("CANCELLED by 1000").
JobState slurm_state(const std::string& text);

}  // namespace tally
