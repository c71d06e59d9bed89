// A record of what a GPU did, kernel by kernel, between two points of a run: CUPTI's activity
// records. CUPTI is opened at run time, so that the program starts without it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/device/stream.h"

namespace tally::train {

// One kernel, copy or fill. Times in nanoseconds, on one clock.
struct DeviceActivity {
  std::string name;  // demangled; copies and fills are "[copy to device]", "[fill]", ...
  int64_t start = 0, end = 0;
  uint32_t stream = 0, graph = 0;  // graph: 0 outside of CUDA graphs
  std::string grid, block;         // "132x1x1"; empty for copies and fills
  int64_t registers = 0;           // a thread
  int64_t shared_bytes = 0;        // a block
  int64_t bytes = 0;               // size of a copy or fill
};

class DeviceProfiler {
 public:
  virtual ~DeviceProfiler() = default;
  // Records from here on what the device starts. The device is idle.
  virtual void start() = 0;
  // Ends that and returns the records, in the order of their starts. The device is idle. `lost`,
  // unless null, becomes the number of records that CUPTI could not keep.
  virtual std::vector<DeviceActivity> stop(int64_t* lost) = 0;

  // Makes one for the GPU of `stream`. Throws DeviceError with one clear sentence where it cannot
  // be profiled: on the CPU, without CUPTI, or where another tool uses it. There is one at a time
  // in a process.
  static std::unique_ptr<DeviceProfiler> open(Stream& stream);
};

}  // namespace tally::train
