// Decides when a peer has been silent for too long. A process that is stopped (SIGSTOP, a debugger,
// a host that hangs) keeps its connections open, because the kernel acknowledges what arrives. Only
// what the process itself sends shows that it is alive.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace tally::train {

// For one thread, which passes the current time with every call.
class SilenceWatch {
 public:
  using Clock = std::chrono::steady_clock;
  SilenceWatch(size_t peers, double limit_seconds, Clock::time_point now)
      : limit_(std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double>(limit_seconds))),
        heard_(peers, now),
        last_round_(now) {}

  // Between two heartbeats, and between two calls of round() at most.
  Clock::duration interval() const {
    return std::min<Clock::duration>(limit_ / 4, std::chrono::seconds(5));
  }
  void heard(size_t peer, Clock::time_point now) { heard_[peer] = now; }
  // To be called after the peers' messages were read. When this process was stopped itself, as all
  // processes of a job are when a scheduler suspends it, the silence says nothing about the peers,
  // and counting starts again.
  void round(Clock::time_point now) {
    if (now - last_round_ > 2 * interval()) std::fill(heard_.begin(), heard_.end(), now);
    last_round_ = now;
  }
  bool silent(size_t peer, Clock::time_point now) const { return now - heard_[peer] > limit_; }

 private:
  const Clock::duration limit_;
  std::vector<Clock::time_point> heard_;
  Clock::time_point last_round_;
};

}  // namespace tally::train
