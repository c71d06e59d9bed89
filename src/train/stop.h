// Being asked to stop: by a signal or by the clock.
#pragma once

#include <chrono>
#include <string>

namespace tally::train {

// Catches SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 while it lives: batch systems send one of them
// before a job's time is over. One object at a time. A second SIGINT (ctrl-C twice) ends the
// program at once.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  // The first signal that came, or 0.
  static int received();
};

std::string signal_name(int signal);  // "SIGTERM"

// --exit-duration-in-mins, counted from the program's start.
class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;
  // 0 minutes: no limit.
  TimeLimit(double minutes, Clock::time_point start) : minutes_(minutes), start_(start) {}
  bool reached() const {
    return minutes_ > 0 &&
           std::chrono::duration<double, std::ratio<60>>(Clock::now() - start_).count() >= minutes_;
  }
  double minutes() const { return minutes_; }

 private:
  double minutes_;
  Clock::time_point start_;
};

}  // namespace tally::train
