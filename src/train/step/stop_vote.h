// The stop vote: how several ranks stop after the same step although only one of them is asked to.
// Every step sums the votes of all ranks (StepState::stop_votes), and each rank learns the sum with
// that step's results. No host waits for it.
#pragma once

#include "src/device/step_state.h"
#include "src/train/run/failures.h"

namespace tally::train {

class StopVote {
 public:
  // The vote of `ranks` processes.
  explicit StopVote(int ranks) : ranks_(ranks) {}

  // The request that this rank received; the outcome is completed where there is none.
  void tell(const Ending& told) { told_ = told; }
  // This rank's vote in the step that begins.
  double vote() const;
  // Counts the results of a step. Every rank counts the same steps before it asks for the outcome.
  void count(const StepState& step) {
    if (ranks_ > 1) sum_ += step.stop_votes;
  }
  // One rank stops when it is asked to; several ranks stop when all of them know. `exit_minutes`:
  // the value of --exit-duration-in-mins, for the message.
  Ending outcome(double exit_minutes) const;

 private:
  const int ranks_;
  Ending told_;
  double sum_ = 0;
};

}  // namespace tally::train
