// Whether this machine's CPUs are slower than they should be, from Linux's /sys: thermal
// throttling, and clocks below the base clock.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tally {

class CpuClocks {
 public:
  // `root`: where /proc and /sys are, which tests replace.
  explicit CpuClocks(std::string root = "");

  // Whether the clocks of busy CPUs can be judged, so that look() is worth calling.
  bool has_clocks() const { return !base_.empty(); }
  // Takes a look at the clocks of CPUs that were busy since the last look. Call it about once a
  // second while something is measured.
  void look();

  // All that was seen up to one moment.
  struct Sample {
    long long events = 0;  // of thermal throttling, since the machine was started
    double looks = 0;      // at a busy CPU
    double ghz = 0;        // sum over the looks
    double base_ghz = 0;   // sum over the looks
  };
  Sample sample() const;

 private:
  struct Times {
    double busy = 0, all = 0;
  };
  std::map<int, Times> times() const;

  std::string root_;
  std::vector<std::string> counters_;  // files with numbers of throttling events
  std::map<int, double> base_;         // GHz, by CPU
  std::map<int, Times> before_;        // at the last look
  Sample seen_;
};

// "CPU: 12 thermal throttling events", "CPU: 1.80 GHz, below the base clock of 2.40 GHz"; both; or
// empty: the CPUs were as fast as they should be between the two samples.
std::string cpu_throttling(const CpuClocks::Sample& from, const CpuClocks::Sample& to);

}  // namespace tally
