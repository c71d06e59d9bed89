// Requests to stop: by a signal or by the clock.
#pragma once

#include <chrono>
#include <string>

namespace tally::train {

// Catches SIGTERM, SIGINT, SIGUSR1, SIGUSR2 and SIGHUP from here to the end of the process: batch
// systems send one of them before a job's time is over, a terminal sends SIGHUP when it closes.
// Further signals while the run stops change nothing, except that a second SIGINT (ctrl-C twice)
// ends the program at once. SIGHUP is left alone where it is ignored, as under nohup.
void catch_stop_signals();
// The first of these signals that came, or 0.
int received_stop_signal();

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
