// Starts a workpackage: takes its GPUs, makes its task, records its state and prepares its folder.
#pragma once

#include <set>

#include "engine/base/status.h"
#include "engine/execute/queue.h"
#include "engine/execute/run_context.h"
#include "engine/execute/task.h"

namespace tally {

class Starter {
 public:
  Starter(RunContext& context, Queue& queue, Tasks& tasks)
      : context_(context), queue_(queue), tasks_(tasks) {}

  // Starts a workpackage that came from the queue. Its task may have failed already. Null: it waits
  // for GPUs and is back in the queue. An error status means that the journal failed.
  Status start(int id, Task** started);
  // The workpackage started last; -1: none.
  int last() const { return last_; }

 private:
  RunContext& context_;
  Queue& queue_;
  Tasks& tasks_;
  int last_ = -1;
};

// Ends the repeats of points whose metric is known precisely enough (a step's `repeat: {until}`), and
// those of the machines of a fleet that are decided.
class RepeatStop {
 public:
  explicit RepeatStop(RunContext& context) : context_(context) {}

  // Decides whether a workpackage that is about to start need not run. If so, it is removed from
  // the journal and from the graph. An error status means that the journal failed.
  Status decide(int id, bool* dropped);
  // Whether the workpackage and all that follow may not begin now.
  bool is_spent() const { return spent_; }
  // How many were dropped in this session.
  int dropped() const { return dropped_; }

 private:
  int ended() const;  // workpackages

  RunContext& context_;
  int asked_ = -1;  // the round for which the results were read, or ended() then
  std::set<int> not_needed_;
  bool spent_ = false;
  int dropped_ = 0;
};

}  // namespace tally
