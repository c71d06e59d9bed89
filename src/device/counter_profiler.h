// Hardware counters of a GPU, kernel by kernel: CUPTI's range profiler. CUPTI is opened at run
// time, so that the program starts without it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/device/stream.h"

namespace tally::train {

// Launches and counts are known from two sources: CUPTI's callback at each launch,
// and its counter data. Both are in the order of the launches.
struct CounterReading {
  std::vector<std::string> launched;        // names of the kernels, demangled
  std::vector<std::vector<double>> values;  // each counted kernel's: one for each selected metric
  int64_t dropped = 0;                      // kernels whose values CUPTI could not keep
};

class CounterProfiler {
 public:
  virtual ~CounterProfiler() = default;
  // CUPTI's name of the chip, as "GH100".
  virtual std::string chip() const = 0;
  // Whether the chip has a metric; its name without a suffix, as "sm__cycles_active".
  virtual bool has_metric(const std::string& base) const = 0;
  // Metrics to read from now on, with suffixes. Returns how often each kernel is run for them: the
  // memory that it writes is restored in between. Called once, before start().
  virtual int select(const std::vector<std::string>& metrics) = 0;
  // Counts the kernels that are launched from here on, each by itself. The device is idle.
  virtual void start() = 0;
  // Ends that. The device is idle. Another start() may follow.
  virtual CounterReading stop() = 0;

  // Makes one for the GPU of `stream`. Throws DeviceError with one clear sentence where counters
  // cannot be read: on the CPU, without CUPTI, or where the driver does not allow it. There is one
  // at a time in a process, and not together with a DeviceProfiler.
  static std::unique_ptr<CounterProfiler> open(Stream& stream);
};

}  // namespace tally::train
