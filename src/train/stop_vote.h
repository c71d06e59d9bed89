// How several ranks stop after the same step although one of them is told to: every step adds up
// what all of them say (StepState::stop_votes), and each learns the sum when that step's results
// are there. No host waits for it.
#pragma once

#include "src/device/step_state.h"
#include "src/train/failures.h"

namespace tally::train {

class StopVote {
 public:
  // Of `ranks` processes.
  explicit StopVote(int ranks) : ranks_(ranks) {}

  // What this rank was told; the outcome is completed where it goes on.
  void tell(const Ending& told) { told_ = told; }
  // Its vote in the step that begins.
  double vote() const;
  // The results of a step. Every rank counts the same steps before it asks for the outcome.
  void count(const StepState& step) {
    if (ranks_ > 1) sum_ += step.stop_votes;
  }
  // One rank stops when it is told to; several when all of them know. `exit_minutes`: of
  // --exit-duration-in-mins, for the sentence.
  Ending outcome(double exit_minutes) const;

 private:
  const int ranks_;
  Ending told_;
  double sum_ = 0;
};

}  // namespace tally::train
