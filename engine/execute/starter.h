// A workpackage is started here: GPUs taken, its task made, its state recorded, its folder prepared.
#pragma once

#include "engine/base/status.h"
#include "engine/execute/queue.h"
#include "engine/execute/run_context.h"
#include "engine/execute/task.h"

namespace tally {

class Starter {
 public:
  Starter(RunContext& context, Queue& queue, Tasks& tasks)
      : context_(context), queue_(queue), tasks_(tasks) {}

  // Starts a workpackage that came out of the queue; its task may have failed already. Null: it
  // waits for GPUs, the queue has it again. A status is a failure of the journal.
  Status start(int id, Task** started);
  // The one started last; -1: none.
  int last() const { return last_; }

 private:
  RunContext& context_;
  Queue& queue_;
  Tasks& tasks_;
  int last_ = -1;
};

}  // namespace tally
