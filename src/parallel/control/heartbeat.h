// Decides when a peer has been silent for too long. A process that is stopped (SIGSTOP, a debugger)
// keeps its connections open, because the kernel acknowledges what arrives. Only what the process
// itself sends shows that it is alive.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace tally::train {

// One thread uses it, and passes the current time with every call.
class SilenceWatch {
 public:
  using Clock = std::chrono::steady_clock;
  // `process_seconds`: for a process that is silent while its host answers. `host_seconds`: for one
  // of whose host nothing is known, since a network may fail for a while. The first is not longer.
  SilenceWatch(size_t peers, double process_seconds, double host_seconds, Clock::time_point now)
      : process_limit_(seconds(process_seconds)),
        host_limit_(seconds(host_seconds)),
        heard_(peers, now),
        answers_since_(peers, now),
        last_round_(now) {}

  // The time between two heartbeats, and the most between two calls of round().
  Clock::duration interval() const {
    return std::min<Clock::duration>(process_limit_ / 4, std::chrono::seconds(5));
  }
  void heard(size_t peer, Clock::time_point now) { heard_[peer] = now; }
  // Whether the peer's host has acknowledged what was sent lately. Called in every round.
  void host_answers(size_t peer, bool answers, Clock::time_point now) {
    if (!answers) answers_since_[peer] = now;
  }
  // Called after the peers' messages were read. When this process was stopped itself, as all
  // processes of a job are when a scheduler suspends it, the silence says nothing about the peers,
  // and counting starts again. Returns whether that was so.
  bool round(Clock::time_point now) {
    const bool stopped = now - last_round_ > 2 * interval();
    if (stopped) {
      std::fill(heard_.begin(), heard_.end(), now);
      std::fill(answers_since_.begin(), answers_since_.end(), now);
    }
    last_round_ = now;
    return stopped;
  }
  // The process alone, and its host with it.
  bool process_silent(size_t peer, Clock::time_point now) const {
    return now - std::max(heard_[peer], answers_since_[peer]) > process_limit_;
  }
  bool host_silent(size_t peer, Clock::time_point now) const {
    return now - heard_[peer] > host_limit_;
  }
  double silence(size_t peer, Clock::time_point now) const {
    return std::chrono::duration<double>(now - heard_[peer]).count();
  }

 private:
  static Clock::duration seconds(double s) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
  }
  const Clock::duration process_limit_, host_limit_;
  std::vector<Clock::time_point> heard_, answers_since_;
  Clock::time_point last_round_;
};

}  // namespace tally::train
