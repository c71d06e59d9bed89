#include "src/train/step/stop_vote.h"

#include <fmt/format.h>

namespace tally::train {
namespace {

// Up to a million votes for the time limit do not add up to one for a signal.
constexpr double time_limit_vote = 1, signal_vote = 1 << 20;

}  // namespace

double StopVote::vote() const {
  if (told_.outcome == Outcome::time_limit) return time_limit_vote;
  if (told_.outcome == Outcome::signalled) return signal_vote;
  return 0;
}

Ending StopVote::outcome(double exit_minutes) const {
  if (ranks_ == 1) return told_;
  if (sum_ == 0) return {};
  if (told_.outcome != Outcome::completed) return told_;
  if (sum_ >= signal_vote)
    return {Outcome::signalled, "another process of the run received a signal to stop"};
  return {Outcome::time_limit,
          fmt::format("--exit-duration-in-mins {} is over in another process", exit_minutes)};
}

}  // namespace tally::train
