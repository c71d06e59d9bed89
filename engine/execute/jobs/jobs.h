// Jobs in a scheduler's queue. Each job is named, submitted once and followed until its end is
// established.
//
// The journal first records the job's name, then the job is submitted, then the journal records its
// id. A name without an id means that the engine was killed or that the scheduler's answer was
// lost. The scheduler is then searched for the name before anything is submitted again.
//
// The end of a job is what it wrote into its status file, once a later report of the
// scheduler agrees with it about the same start of the job. The report is needed because a node may
// be lost while the job script still runs; the script then takes the end of srun for the end of its
// program. Without a status file the scheduler's state counts. When neither says anything for the
// grace period, the job is lost.
#pragma once

#include <chrono>
#include <deque>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/execute/jobs/job_rules.h"
#include "engine/execute/jobs/scheduler.h"
#include "engine/journal/journal.h"
#include "engine/workspace/run_log.h"

namespace tally {

// Files by which a job reports its end, with absolute paths. Without a status file, JUBE's
// convention applies: an error file or a done file. Without any of them the scheduler's state
// decides.
struct JobMarks {
  std::string status_file, done_file, error_file;
  bool any() const { return !status_file.empty() || !done_file.empty() || !error_file.empty(); }
  // The owner file names the job that the folder belongs to, and the job script reads it. A job
  // does nothing if it was requeued after its end was recorded, or if another job was submitted in
  // its place. Empty without a status file.
  std::string owner_file() const { return status_file.empty() ? "" : status_file + ".job"; }
  // The job script sets the variables in this file. Empty without a status file.
  std::string environment_file() const { return status_file.empty() ? "" : status_file + ".env"; }
  // The first to start of several jobs with one name writes its id into this file and works; the
  // others end. Empty without a status file.
  std::string claim_file(const std::string& name) const {
    return status_file.empty() ? "" : status_file + ".claim-" + name;
  }
};
// The exit status that a job wrote.
struct JobExit {
  int code = 0;
  // How often the job had been restarted before it wrote the status (SLURM_RESTART_COUNT). -1: the
  // file does not say.
  int restarts = -1;
  // The job was being preempted when its program ended. The program's exit code then says nothing.
  bool preempted = false;
  bool unasked = false;  // the job could not find that out
};
// Reads the exit status that the job has written, if it has. An error: the host cannot tell.
Status exit_left(const JobMarks& marks, std::optional<JobExit>* exit);

struct Job {
  int workpackage = 0;
  JobRequest request;
  JobMarks marks;
  JobRules rules;
  std::string label;       // for people: the workpackage's folder
  std::string id;          // set if an earlier engine submitted the job
  bool named = false;      // the journal has request.name, so the job may have been submitted
  long long named_at = 0;  // earliest time of submission, in seconds since 1970
  // Set when the workpackage shares its job with others (pack). "#4" is task 4 of an array; "@4" is
  // one step of an allocation. Part of the name that the journal keeps.
  std::string member;
  // The other members of the job. They are followed like this one as soon as the job is known.
  std::vector<Job> members;

  std::string journal_name() const { return request.name + member; }
  // The scheduler's id for this member of `job`.
  std::string id_in(const std::string& job) const {
    return member.rfind('#', 0) == 0 ? job + "_" + member.substr(1) : job;
  }
};

// The name of the job that a workpackage's name in the journal begins with. A member of a pack has
// its place behind it: `#3`, `@1`.
inline std::string job_of_name(const std::string& name) {
  return name.substr(0, name.find_first_of("#@"));
}

struct JobEnd {
  enum class Kind {
    exit,       // its program ended with exit_code
    rejected,   // the scheduler refused it
    failed,     // the scheduler ended it, or it waited too long in the queue
    retryable,  // ended for a reason outside the job
    lost,       // its end is unknown
  };
  int workpackage = 0;
  Kind kind = Kind::lost;
  int exit_code = 0;
  std::string word;        // the scheduler's state, such as TIMEOUT
  std::string words;       // the scheduler's message, in a sentence
  std::string nodes = {};  // on which it ran; empty: unknown
};

// A job as it is shown to people.
struct JobView {
  int workpackage = -1;
  std::string label, id, state, reason;
  std::string parameters;  // those that differ within the step: "layers=2 batch=8"
  long long since = 0;     // start of queueing or of running, in seconds since 1970; 0: unknown
  bool running = false;
};

class JobFollower {
 public:
  using Clock = std::chrono::steady_clock;
  JobFollower(Scheduler& scheduler, Journal& journal, RunLog& log)
      : scheduler_(scheduler), journal_(journal), log_(log) {
    timing_.first_query = scheduler.pause();
  }
  ~JobFollower();
  JobFollower(const JobFollower&) = delete;
  JobFollower& operator=(const JobFollower&) = delete;

  struct Timing {
    // Interval between looks at the files.
    std::chrono::milliseconds first_look{200}, slowest_look{5000};
    // Interval between queries to the scheduler.
    std::chrono::milliseconds first_query{1000}, slowest_query{30000};
    // Submitting blocks the engine's loop for at most this long plus one submission.
    std::chrono::milliseconds longest_turn{250};
    bool background = true;  // queries run in their own thread, because they may hang
  };
  void set_timing(const Timing& timing) { timing_ = timing; }

  void add(Job job);
  // Submits jobs, reads their files and queries the scheduler, each when it is due. Reports which
  // jobs ended. Never waits, but one submission takes as long as the scheduler's command. An error
  // status means that the journal failed.
  Status turn(std::vector<JobEnd>* ended, Clock::time_point now = Clock::now());
  // The time at which turn() may have something to do again.
  Clock::time_point next() const;

  size_t count() const { return jobs_.size(); }
  // Ids of the jobs that are known to be submitted.
  std::vector<std::string> ids() const;
  // Workpackages that are not submitted yet. The scheduler knows nothing of them.
  std::vector<int> unsubmitted() const;
  // Whether nothing is left to submit or to look for, except jobs that wait for other jobs to end.
  bool nothing_to_submit() const;
  std::vector<JobView> views() const;
  // The scheduler's last error message, while its commands fail. Empty: they do not.
  const std::string& trouble() const { return last_trouble_; }
  // Cancels, by their names, all jobs in the queue with one command and stops following them.
  // Returns their workpackages.
  Status cancel_all(std::vector<int>* workpackages);

 private:
  enum class Stage { find, submit, follow };
  struct Tracked {
    Job job;
    Stage stage = Stage::submit;
    JobReport report;
    // When the scheduler first reported it as ended or unknown.
    std::optional<Clock::time_point> gone_since;
    std::optional<Clock::time_point> trouble_since;  // when its submission first failed
    // Since when it is queued for a reason that will not pass.
    std::optional<Clock::time_point> stuck_since;
    // The exit status that the job wrote. It counts once a query sent after it was seen confirms
    // it.
    std::optional<JobExit> exit;
    Clock::time_point exit_seen;
    Clock::time_point running_at;  // when the scheduler last said that it runs
    bool requeued = false;  // back in the queue; the status of its first start does not count
    bool heard = false;
    std::string refused;  // the error of a submission that may have worked: the job is looked for
  };
  struct Asked {
    Clock::time_point at;
    std::vector<std::string> ids;
    std::map<std::string, JobReport> reports;
    Status status;
  };

  void find_named(Clock::time_point now, std::vector<JobEnd>* ended);
  Status submit_ready(Clock::time_point now, std::vector<JobEnd>* ended);
  Status submit(Tracked& tracked, Clock::time_point now, std::vector<JobEnd>* ended);
  Status name_ready();
  // Records that the job and its members have the id `id`, and follows them from now on.
  Status follow(Tracked& tracked, const std::string& id, Clock::time_point now);
  static Status has_run(const Tracked& tracked, bool* has);
  static void end_unfound(Tracked& tracked, std::vector<JobEnd>* ended);
  static void end_members(const Tracked& tracked, std::vector<JobEnd>* ended, size_t from);
  bool moves() const;
  bool may_submit(const Tracked& tracked, Clock::time_point now) const;
  void refused(Tracked& tracked, Refusal refusal, const std::string& words, Clock::time_point now,
               std::vector<JobEnd>* ended);
  void trouble(Tracked& tracked, const std::string& words, Clock::time_point now,
               std::vector<JobEnd>* ended);
  void look(Clock::time_point now, std::vector<JobEnd>* ended);
  void take_exit(Tracked& tracked, const JobExit& exit, Clock::time_point now,
                 std::vector<JobEnd>* ended);
  bool take_active(Tracked& tracked, const Asked& asked, std::vector<JobEnd>* ended);
  static bool of_another_start(const Tracked& tracked, const JobExit& exit);
  bool is_alone(const Tracked& tracked, Clock::time_point now) const;
  static bool is_preempted(const Tracked& tracked);
  static JobEnd preempted_end(const Tracked& tracked);
  void start_query(Clock::time_point now);
  void take_query(Clock::time_point now, std::vector<JobEnd>* ended);
  void take_report(Tracked& tracked, const Asked& asked, Clock::time_point now,
                   std::vector<JobEnd>* ended);
  bool follow_claimant(Tracked& tracked, Clock::time_point now);
  bool find_other(Tracked& tracked, Clock::time_point now);
  void take_other(Tracked& tracked, const std::string& id, Clock::time_point now);
  bool waits_too_long(Tracked& tracked, Clock::time_point now, std::string* words) const;
  JobEnd end_without_exit(const Tracked& tracked) const;
  JobEnd end_with_exit(const Tracked& tracked) const;
  void forget(std::vector<JobEnd>* ended, size_t from);
  Status own(const Tracked& tracked) const;
  void disown(const Job& job);
  void hurry(Clock::time_point now);
  size_t followed() const;
  Clock::time_point answer_next() const;

  Scheduler& scheduler_;
  Journal& journal_;
  RunLog& log_;
  Timing timing_;
  std::map<int, Tracked> jobs_;  // by workpackage
  std::deque<int> queue_;        // to be submitted, in order
  double tokens_ = burst;        // submissions that the rate allows now
  Clock::time_point tokens_at_ = Clock::now();
  Clock::time_point submit_next_ = Clock::time_point(), find_next_ = Clock::time_point();
  std::chrono::milliseconds back_off_{0};
  bool full_ = false;  // a limit on queued jobs was reached
  Clock::time_point look_next_ = Clock::time_point(), query_next_ = Clock::time_point();
  std::chrono::milliseconds look_interval_{0}, query_interval_{0};
  std::optional<std::future<Asked>> query_;
  Clock::time_point query_started_;
  std::string last_trouble_;
  static constexpr double burst = 500;
};

}  // namespace tally
