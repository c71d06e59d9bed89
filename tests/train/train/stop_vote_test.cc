#include "src/train/step/stop_vote.h"

#include <doctest/doctest.h>

#include <vector>

using namespace tally::train;

namespace {

// The state of a step in which all ranks together voted so.
StepState step_of(double votes) {
  StepState s{};
  s.stop_votes = votes;
  return s;
}

const Ending time_limit{Outcome::time_limit, "--exit-duration-in-mins 5 is over"};
const Ending signalled{Outcome::signalled, "SIGTERM was received"};

double vote_for(const Ending& told) {
  StopVote vote(2);
  vote.tell(told);
  return vote.vote();
}

}  // namespace

TEST_CASE("one process stops as soon as it is told to") {
  StopVote vote(1);
  CHECK(vote.outcome(0).outcome == Outcome::completed);
  vote.count(step_of(7));  // nobody else has a vote
  CHECK(vote.outcome(0).outcome == Outcome::completed);
  vote.tell(signalled);
  CHECK(vote.outcome(0).outcome == Outcome::signalled);
  CHECK(vote.outcome(0).message == signalled.message);
}

TEST_CASE("one of several goes on until the votes of a step are counted") {
  StopVote vote(2);
  CHECK(vote.vote() == 0);
  vote.tell(time_limit);
  CHECK(vote.vote() > 0);
  CHECK(vote.outcome(5).outcome == Outcome::completed);
  vote.count(step_of(0));
  CHECK(vote.outcome(5).outcome == Outcome::completed);
  vote.count(step_of(vote.vote()));
  CHECK(vote.outcome(5).message == time_limit.message);
  vote.count(step_of(0));  // it is not forgotten
  CHECK(vote.outcome(5).outcome == Outcome::time_limit);
}

TEST_CASE("a process learns why another one stops") {
  StopVote limited(3), signal(3), both(3);
  limited.count(step_of(vote_for(time_limit)));
  CHECK(limited.outcome(2.5).outcome == Outcome::time_limit);
  CHECK(limited.outcome(2.5).message == "--exit-duration-in-mins 2.5 is over in another process");
  signal.count(step_of(vote_for(signalled)));
  CHECK(signal.outcome(0).outcome == Outcome::signalled);
  CHECK(signal.outcome(0).message == "another process of the run received a signal to stop");
  both.count(step_of(vote_for(signalled) + vote_for(time_limit)));
  CHECK(both.outcome(5).outcome == Outcome::signalled);
  // The time of all of a large run is over at once.
  StopVote large(1000000);
  large.count(step_of(1000000 * vote_for(time_limit)));
  CHECK(large.outcome(5).outcome == Outcome::time_limit);
}

// As the step loop does it: the sum of a step's votes is known some steps later.
TEST_CASE("all ranks stop after the same step, whoever is told when") {
  constexpr int ranks = 3, behind = 2;
  for (int told_rank = 0; told_rank < ranks; ++told_rank) {
    for (int told_step = 0; told_step < 4; ++told_step) {
      CAPTURE(told_rank);
      CAPTURE(told_step);
      std::vector<StopVote> votes(ranks, StopVote(ranks));
      std::vector<double> sums;
      bool stopped = false;
      for (int step = 0; !stopped; ++step) {
        REQUIRE(step < 10);
        sums.push_back(0);
        for (StopVote& vote : votes) {
          if (step >= behind) vote.count(step_of(sums[static_cast<size_t>(step - behind)]));
          sums.back() += vote.vote();
        }
        int stopping = 0;
        for (int r = 0; r < ranks; ++r) {
          StopVote& vote = votes[static_cast<size_t>(r)];
          if (r == told_rank && step >= told_step) vote.tell(signalled);
          stopping += vote.outcome(0).outcome == Outcome::signalled;
        }
        CHECK((stopping == 0 || stopping == ranks));
        stopped = stopping > 0;
        if (stopped)
          CHECK(step == told_step + 1 + behind);  // told after a step, a vote in the next
      }
    }
  }
}
