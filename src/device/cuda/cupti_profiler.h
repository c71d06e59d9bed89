// DeviceProfiler by CUPTI's activity records.
#pragma once

#include <memory>

#include "src/device/profiler.h"

namespace tally::train::cuda {

// Throws DeviceError.
std::unique_ptr<DeviceProfiler> open_cupti_profiler();

}  // namespace tally::train::cuda
