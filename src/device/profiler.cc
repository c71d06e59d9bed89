#include "src/device/profiler.h"

#include "src/device/devices.h"

namespace tally::train {

std::unique_ptr<DeviceProfiler> DeviceProfiler::open(Stream& stream) {
  if (!stream.device().is_cuda())
    throw DeviceError("a profile has the kernels of a GPU, and this run is on the CPU");
  return gpus()->open_profiler();
}

}  // namespace tally::train
