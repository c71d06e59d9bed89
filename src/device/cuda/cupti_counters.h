// CounterProfiler by CUPTI's range profiler: every kernel is a range, and it is run once for each pass.
#pragma once

#include <memory>

#include "src/device/counter_profiler.h"

namespace tally::train::cuda {

// For the GPU that CUDA's runtime numbers `device`, whose context is current. Throws DeviceError.
std::unique_ptr<CounterProfiler> open_cupti_counters(int device);

}  // namespace tally::train::cuda
