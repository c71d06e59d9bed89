// A kernel as CUPTI records it, for tests of what reads such records.
#pragma once

#include <cstdint>
#include <string>

#include "src/device/profiler.h"

namespace tally::train {

inline DeviceActivity kernel(const std::string& name, int64_t start, int64_t end,
                             uint32_t stream = 7) {
  DeviceActivity a;
  a.name = name;
  a.start = start;
  a.end = end;
  a.stream = stream;
  a.grid = "132x1x1";
  a.block = "128x1x1";
  return a;
}

}  // namespace tally::train
