#include "src/device/counter_profiler.h"

#include "src/device/devices.h"

namespace tally::train {

std::unique_ptr<CounterProfiler> CounterProfiler::open(Stream& stream) {
  if (!stream.device().is_cuda())
    throw DeviceError("hardware counters are those of a GPU, and this run is on the CPU");
  return gpus()->open_counters(stream.device().index);
}

}  // namespace tally::train
