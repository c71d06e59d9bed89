// Ends the repeats of points whose metric is known precisely enough (a step's `repeat: {until}`).
#pragma once

#include <set>

#include "engine/base/status.h"
#include "engine/execute/run_context.h"

namespace tally {

class RepeatStop {
 public:
  explicit RepeatStop(RunContext& context) : context_(context) {}

  // Decides whether a workpackage that is about to start need not run. If so, it is removed from
  // the journal and from the graph. An error status means that the journal failed.
  Status decide(int id, bool* dropped);
  // How many were dropped in this session.
  int dropped() const { return dropped_; }

 private:
  RunContext& context_;
  int asked_ = -1;  // the round for which the results were read
  std::set<int> not_needed_;
  int dropped_ = 0;
};

}  // namespace tally
