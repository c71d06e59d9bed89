#include "src/train/step/step_results.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

using namespace tally::train;

namespace {

// Step number n of a run, counted from 0.
StepState state_of(int n) {
  StepState s{};
  s.loss_sums[0] = 10 - n;
  s.labels[0] = n % 5 == 2 ? 0 : n + 1;
  s.labels[1] = n % 7 == 3 ? 0 : n + 1;
  s.learning_rate = 0.1 * n;
  s.grad_norm = static_cast<float>(n) + 0.5F;
  s.step_loss_scale = static_cast<float>(n + 1);
  s.found_inf = n % 3 == 1 ? 1 : 0;
  return s;
}

}  // namespace

TEST_CASE("results come in the order of the steps, with what the host knew at their begin") {
  const auto stream = make_stream(Device{});
  StepResults results(*stream, 4);
  CHECK(results.capacity() == 4);
  int n = 0;
  for (const int steps : {3, 4, 1}) {  // taken before the places are full, when they are, and again
    const int first = n;
    for (int k = 0; k < steps; ++k, ++n) {
      CHECK_FALSE(results.full());
      CHECK(results.begin(6 + n) == k);
      StepState state = state_of(n);
      results.end(&state);
      state = {};  // the next step overwrites it
      CHECK(results.pending() == k + 1);
    }
    CHECK(results.full() == (steps == 4));
    results.wait();
    CHECK(results.done() == steps);
    const std::vector<Step> taken = results.take(100 + first);
    REQUIRE(taken.size() == static_cast<size_t>(steps));
    for (int k = 0; k < steps; ++k) {
      const Step& step = taken[static_cast<size_t>(k)];
      const StepState want = state_of(first + k);
      CHECK(step.iteration == 100 + first + k);
      CHECK(step.unlabelled == (want.labels[0] == 0 || want.labels[1] == 0));
      CHECK((step.unlabelled ? std::isnan(step.loss) : step.loss == want.loss()));
      CHECK(step.has_loss() == (want.labels[0] > 0 && want.labels[1] > 0 && want.found_inf == 0));
      CHECK(step.grad_norm == want.grad_norm);
      CHECK(step.loss_scale == want.step_loss_scale);
      CHECK(step.skipped == (want.found_inf != 0));
      CHECK(step.learning_rate == want.learning_rate);
      CHECK(step.samples == 6 + first + k);
      CHECK(step.seconds >= 0);
    }
    CHECK(results.pending() == 0);
    CHECK(results.done() == 0);
  }
}

TEST_CASE("all but the last steps are known to be done without waiting for the device") {
  const auto stream = make_stream(Device{});
  StepResults results(*stream, 6);
  std::set<const StepState*> staging;
  for (int n = 0; n < 6; ++n) {
    results.begin(1);
    // A copy to the device may be under way: no two pending steps share what it reads.
    CHECK(staging.insert(results.staging()).second);
    const int done = n < StepResults::run_ahead ? 0 : n - StepResults::run_ahead + 1;
    CHECK(results.done() == done);
    for (int k = 0; k < done; ++k) CHECK(results.state(k).loss() == state_of(k).loss());
    const StepState state = state_of(n);
    results.end(&state);
  }
}
