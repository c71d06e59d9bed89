#include "src/train/run/stop.h"

#include <doctest/doctest.h>

#include <csignal>

using namespace tally::train;

TEST_CASE("signals are remembered, the first of them") {
  catch_stop_signals();
  CHECK(received_stop_signal() == 0);
  std::raise(SIGUSR1);
  std::raise(SIGTERM);
  CHECK(received_stop_signal() == SIGUSR1);
  CHECK(signal_name(SIGUSR2) == "SIGUSR2");
}

TEST_CASE("the time limit counts from the program's start") {
  const auto now = TimeLimit::Clock::now();
  CHECK_FALSE(TimeLimit(0, now - std::chrono::hours(100)).reached());
  CHECK(TimeLimit(5, now - std::chrono::minutes(6)).reached());
  CHECK_FALSE(TimeLimit(5, now - std::chrono::minutes(4)).reached());
}
