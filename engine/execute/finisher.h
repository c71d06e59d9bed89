// The end of a workpackage is noted here: its state in the journal, its children, another try, the
// marks and lines for people. Holds how many have ended, and how.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/execute/queue.h"
#include "engine/execute/run_context.h"
#include "engine/execute/setup_sharing.h"
#include "engine/execute/shared_operations.h"
#include "engine/execute/status_line.h"
#include "engine/execute/task.h"

namespace tally {

class Finisher {
 public:
  Finisher(RunContext& context, Queue& queue, Tasks& tasks, SharedOperations& shared,
           SetupSharing& setups, StatusLine& status_line)
      : context_(context),
        queue_(queue),
        tasks_(tasks),
        shared_(shared),
        setups_(setups),
        status_line_(status_line) {}

  // Counts a workpackage that ended in an earlier session, or, in a new run, before it could start.
  // False: it has not ended.
  bool ended_before(int id, bool restored);
  // New workpackages, which are recorded, into the queue.
  void take_created(const std::vector<int>& created);
  // A task has ended, well, badly or to wait, and is no more; so have those that it ran a shared
  // operation for, when it failed. `resubmit`: its job is to be submitted again. A status is a
  // failure of the journal.
  Status end(Task& task, bool resubmit = false);

  struct Counts {
    int done = 0, failed = 0, waiting = 0, lost = 0;
  };
  const Counts& counts() const { return counts_; }
  // Whether something failed in this session.
  bool failed_now() const { return failed_now_; }

 private:
  Status ended_well(Task& task);
  Status ended_badly(Task& task, bool resubmit, bool* again);
  Status try_again(const Task& task, const std::string& which);
  void count_failure();
  void mark(int id, const char* name, const std::string& text);
  void report(const Task& task);
  void print_output(const Task& task);

  RunContext& context_;
  Queue& queue_;
  Tasks& tasks_;
  SharedOperations& shared_;
  SetupSharing& setups_;
  StatusLine& status_line_;
  Counts counts_;
  bool failed_now_ = false;
};

}  // namespace tally
