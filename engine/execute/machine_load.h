// How much of this machine's CPU time other programs use, from Linux's /proc.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace tally {

// Ticks of CPU time up to one moment.
struct LoadSample {
  std::chrono::steady_clock::time_point time;
  double busy = 0;  // of all programs, seconds
  double own = 0;   // of this process and its descendants, seconds
};

class MachineLoad {
 public:
  // `proc`: the folder to read, which tests replace. `pid`: the process whose descendants are ours.
  explicit MachineLoad(std::string proc = "/proc", int pid = 0);

  // Nothing if /proc cannot be read.
  std::optional<LoadSample> sample() const;

 private:
  std::string proc_;
  int pid_;
  double tick_;  // seconds
};

// Returns how many cores other programs used between two samples, on average. Nothing if the time
// between them is too short to tell.
std::optional<double> cores_of_others(const LoadSample& from, const LoadSample& to);

// Whether others used so much that a measurement may have suffered: half a core, and more than the
// kernel's accounting may be wrong by (3 % of what our own programs used).
bool disturbs(const LoadSample& from, const LoadSample& to);

}  // namespace tally
