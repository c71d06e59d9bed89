// A profile of the GPU's kernels: sums by kernel, and the files of single invocations.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/device/profiler.h"

namespace tally::train {

// All invocations of one kernel (or copy).
struct KernelTime {
  std::string name;
  int64_t calls = 0;
  double seconds = 0, min_seconds = 0, max_seconds = 0;
  double share = 0;  // share of the time of all kernels
};

struct DeviceProfile {
  double seconds = 0;         // between the start and the stop, on the host's clock
  double kernel_seconds = 0;  // all kernels and copies; more than busy_seconds where they overlap
  double busy_seconds = 0;    // in which at least one of them ran
  int64_t calls = 0;
  // Means over kernels, each weighted with its duration.
  double mean_registers = 0, mean_shared_bytes = 0;
  std::vector<KernelTime> kernels;  // the longest first

  double busy_fraction() const { return seconds > 0 ? busy_seconds / seconds : 0; }
};

DeviceProfile profile_of(const std::vector<DeviceActivity>& activities, double seconds);

// The mean of first, weighted with second; 0 where all weights are.
double weighted_mean(const std::vector<std::pair<double, double>>& values);

// A line for every invocation, with a header; names are quoted. Times in nanoseconds from the first
// start.
std::string profile_csv(const std::vector<DeviceActivity>& activities);
std::string profile_csv_header();

// Chrome's trace event format (JSON object form; chrome://tracing and Perfetto read it): complete
// events, in microseconds from the first start, a row for each stream. `process`: a name for the
// rank.
std::string chrome_trace(const std::vector<DeviceActivity>& activities, const std::string& process);

}  // namespace tally::train
