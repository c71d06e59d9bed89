// Handles the end of a workpackage: its state in the journal, its children, another attempt, marker
// files and messages.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/execute/queue.h"
#include "engine/execute/run_context.h"
#include "engine/execute/setup_sharing.h"
#include "engine/execute/shared_operations.h"
#include "engine/execute/task.h"

namespace tally {

class Finisher {
 public:
  Finisher(RunContext& context, Queue& queue, Tasks& tasks, SharedOperations& shared,
           SetupSharing& setups)
      : context_(context), queue_(queue), tasks_(tasks), shared_(shared), setups_(setups) {}

  // Whether a workpackage has ended in an earlier session, or before it could start in a new run.
  // Its marker file is written, if it is missing.
  bool ended_before(int id, bool restored);
  // Puts new workpackages into the queue. They are already recorded.
  void take_created(const std::vector<int>& created);
  // Handles the end of a task: it succeeded, failed or waits. The task is destroyed. If it failed
  // while it ran a shared operation for other tasks, these end too. `resubmit`: its job is to be
  // submitted again. An error status means that the journal failed.
  Status end(Task& task, bool resubmit = false);

  // Whether a workpackage failed in this session.
  bool failed_now() const { return failed_now_; }

 private:
  Status ended_well(Task& task, bool* put_off);
  Status ended_badly(Task& task, bool resubmit, bool* again);
  Status try_again(Task& task, const std::string& which);
  void note_failure();
  void mark(int id, const char* name, const std::string& text);
  void report(const Task& task);
  void show_output(const Task& task);

  RunContext& context_;
  Queue& queue_;
  Tasks& tasks_;
  SharedOperations& shared_;
  SetupSharing& setups_;
  bool failed_now_ = false;
};

}  // namespace tally
