// Jobs in a scheduler's queue: submitted once, followed until their fate is established.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/execute/run_log.h"
#include "engine/execute/scheduler.h"
#include "engine/journal/journal.h"

namespace tally {

// How a job ended. `known` false: its fate cannot be established (LOST).
struct JobEnd {
  int package = 0;
  bool known = false;
  int exit_code = 0;   // of the job script's program; -1: ended without one
  std::string reason;  // the scheduler's words, when the program did not say
};

class JobFollower {
 public:
  using Clock = std::chrono::steady_clock;
  JobFollower(Scheduler& scheduler, Journal& journal, RunLog& log)
      : scheduler_(scheduler), journal_(journal), log_(log) {}

  struct Timing {
    std::chrono::milliseconds first_poll{200}, slowest_poll{30000};
    // After the scheduler knows a job no more, or says that it has ended, its exit status may still
    // be on its way through a network file system.
    std::chrono::milliseconds grace{60000};
  };
  void set_timing(const Timing& timing) { timing_ = timing; }

  // Names the job in the journal, submits it, records its id. `rejected` tells a job script that
  // the scheduler does not take from a failure of the journal.
  Status submit(int package, const JobRequest& request, const std::string& status_file,
                std::string* rejected);
  // A job of an earlier engine: by id, or, when it was killed between submission and record, by
  // name. `found` false: there is none, it has to be submitted.
  Status adopt(int package, const std::string& name, const std::string& id,
               const std::string& status_file, bool* found);
  // Those that ended since. Asks the scheduler at most as often as its timing allows.
  std::vector<JobEnd> poll(Clock::time_point now = Clock::now());
  Clock::time_point next_poll() const { return next_; }
  size_t count() const { return jobs_.size(); }
  std::vector<std::string> ids() const;

 private:
  struct Job {
    std::string id, status_file;
    bool gone = false;  // the scheduler does not know it, or says it has ended
    Clock::time_point gone_since;
    std::string reason;
  };
  void follow(int package, const std::string& id, const std::string& status_file);

  Scheduler& scheduler_;
  Journal& journal_;
  RunLog& log_;
  Timing timing_;
  std::map<int, Job> jobs_;  // by package
  Clock::time_point next_ = Clock::now();
  std::chrono::milliseconds interval_{0};
};

// The exit status that a job script left (a number and a newline, moved into place), or nothing.
bool read_exit_status(const std::string& path, int* status);

}  // namespace tally
