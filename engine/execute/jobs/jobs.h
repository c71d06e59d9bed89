// Jobs in a scheduler's queue: named, submitted once, followed until their fate is established.
//
// A job's way: its name goes to the journal, then it is submitted, then its id goes there. A name
// without an id (the engine was killed, or the scheduler's answer was lost) is looked for before
// anything is submitted again. Its end is what it wrote into its status file, once the scheduler
// has agreed about the same start of the job: a node may be lost while the job's script lives on
// and takes the end of srun for that of its program. Without a status file the scheduler's word
// counts; when neither says anything for the grace period, the job is lost.
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
#include "engine/execute/run_log.h"
#include "engine/journal/journal.h"

namespace tally {

// Files by which a job says how it ended, absolute. Without a status file, JUBE's way: an error
// file, or a done file. With none of them the scheduler's word decides.
struct JobMarks {
  std::string status_file, done_file, error_file;
  bool any() const { return !status_file.empty() || !done_file.empty() || !error_file.empty(); }
  // Names the job that the folder belongs to, for its script: a job that is requeued after its end
  // was taken, or in whose place another was submitted, does nothing. Empty without a status file.
  std::string owner_file() const { return status_file.empty() ? "" : status_file + ".job"; }
};
// The exit status that a job left.
struct JobExit {
  int code = 0;
  // How often the job had been started before the start that left it (SLURM_RESTART_COUNT); -1: the
  // file does not say.
  int restarts = -1;
};
// Nothing: the job has left none yet.
std::optional<JobExit> exit_left(const JobMarks& marks);

struct Job {
  int workpackage = 0;
  JobRequest request;
  JobMarks marks;
  JobRules rules;
  std::string label;       // for people: the workpackage's folder
  std::string id;          // of one that an earlier engine submitted
  bool named = false;      // the journal has request.name: it may have been submitted
  long long named_at = 0;  // not submitted before; seconds since 1970
  // Of a workpackage that shares its job with others (pack): "#4", task 4 of an array; "@4", one of
  // the steps of an allocation. Part of the name that the journal keeps.
  std::string place;
  // The others of its job, which are followed like this one as soon as the job is known.
  std::vector<Job> members;

  std::string journal_name() const { return request.name + place; }
  // The scheduler's id for this one, of the job's.
  std::string id_in(const std::string& job) const {
    return place.rfind('#', 0) == 0 ? job + "_" + place.substr(1) : job;
  }
};

struct JobEnd {
  enum class Kind {
    exit,       // its program ended with exit_code
    rejected,   // the scheduler does not take it
    failed,     // the scheduler ended it, or it waited too long
    retryable,  // ended through no fault of its own
    lost,       // nobody knows
  };
  int workpackage = 0;
  Kind kind = Kind::lost;
  int exit_code = 0;
  std::string word;   // the scheduler's state, as TIMEOUT
  std::string words;  // in a sentence, the scheduler's own
};

// What people see of a job.
struct JobView {
  int workpackage = -1;
  std::string label, id, state, reason;
  std::string parameters;  // those that differ between the step's workpackages: "layers=2 batch=8"
  long long since = 0;     // seconds since 1970: in the queue, or running; 0: not known
  bool running = false;
};

class JobFollower {
 public:
  using Clock = std::chrono::steady_clock;
  JobFollower(Scheduler& scheduler, Journal& journal, RunLog& log)
      : scheduler_(scheduler), journal_(journal), log_(log) {}
  ~JobFollower();
  JobFollower(const JobFollower&) = delete;
  JobFollower& operator=(const JobFollower&) = delete;

  struct Timing {
    std::chrono::milliseconds first_look{200}, slowest_look{5000};      // at the files
    std::chrono::milliseconds first_query{1000}, slowest_query{30000};  // to the scheduler
    // Submitting leaves the engine's loop alone for no longer than this, and one submission.
    std::chrono::milliseconds longest_turn{250};
    bool background = true;  // queries in a thread of their own: they may hang
  };
  void set_timing(const Timing& timing) { timing_ = timing; }

  void add(Job job);
  // Submits, looks and asks as far as it is time for, and says which jobs ended. Never waits; a
  // submission takes as long as the scheduler's command. A status is a failure of the journal.
  Status turn(std::vector<JobEnd>* ended, Clock::time_point now = Clock::now());
  // When there may be something to do again.
  Clock::time_point next() const;

  size_t count() const { return jobs_.size(); }
  // Submitted, as far as is known.
  std::vector<std::string> ids() const;
  // Not submitted yet; nothing of them is in the scheduler.
  std::vector<int> unsubmitted() const;
  // Nothing is left to submit or look for, except what waits for the end of other jobs.
  bool settled() const;
  std::vector<JobView> views() const;
  // All that are in the queue, by one command, and forgets them all; their workpackages.
  Status cancel_all(std::vector<int>* workpackages);

 private:
  enum class Stage { find, submit, follow };
  struct Tracked {
    Job job;
    Stage stage = Stage::submit;
    JobReport report;
    std::optional<Clock::time_point> gone_since;     // ended or unknown, by the scheduler
    std::optional<Clock::time_point> trouble_since;  // of its submission
    std::optional<Clock::time_point> stuck_since;    // in the queue for a reason that will not pass
    // The exit status that it left: counts when the scheduler, asked after it was seen, agrees.
    std::optional<JobExit> exit;
    Clock::time_point exit_seen;
    bool requeued = false;  // it waits again: what its first start left does not count
    bool heard = false;
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
  // The job and its members have the id `id` and are followed from now on.
  Status follow(Tracked& tracked, const std::string& id, Clock::time_point now);
  static bool has_run(const Tracked& tracked);
  static void end_unfound(Tracked& tracked, std::vector<JobEnd>* ended);
  static void end_members(const Tracked& tracked, std::vector<JobEnd>* ended, size_t from);
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
  void start_query(Clock::time_point now);
  void take_query(Clock::time_point now, std::vector<JobEnd>* ended);
  void take_report(Tracked& tracked, const Asked& asked, Clock::time_point now,
                   std::vector<JobEnd>* ended);
  bool waits_too_long(Tracked& tracked, Clock::time_point now, std::string* words) const;
  JobEnd end_without_exit(const Tracked& tracked) const;
  JobEnd end_with_exit(const Tracked& tracked) const;
  void forget(std::vector<JobEnd>* ended, size_t from);
  Status own(const Tracked& tracked) const;
  void disown(const Job& job);
  void hurry(Clock::time_point now);
  size_t followed() const;

  Scheduler& scheduler_;
  Journal& journal_;
  RunLog& log_;
  Timing timing_;
  std::map<int, Tracked> jobs_;  // by workpackage
  std::deque<int> queue_;        // to be submitted, in order
  double tokens_ = burst;        // submissions that the rate allows at once
  Clock::time_point tokens_at_ = Clock::now();
  Clock::time_point submit_next_ = Clock::time_point(), find_next_ = Clock::time_point();
  std::chrono::milliseconds back_off_{0};
  bool full_ = false;  // a limit on queued jobs was met
  Clock::time_point look_next_ = Clock::time_point(), query_next_ = Clock::time_point();
  std::chrono::milliseconds look_interval_{0}, query_interval_{0};
  std::optional<std::future<Asked>> query_;
  Clock::time_point query_started_;
  std::string last_trouble_;
  static constexpr double burst = 500;
};

}  // namespace tally
