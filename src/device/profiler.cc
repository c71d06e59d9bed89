#include "src/device/profiler.h"

#ifdef TALLY_WITH_CUDA
#include "src/device/cuda/cupti_profiler.h"
#endif

namespace tally::train {

std::unique_ptr<DeviceProfiler> DeviceProfiler::open(Stream& stream) {
  if (!stream.device().is_cuda())
    throw DeviceError("a profile has the kernels of a GPU, and this run is on the CPU");
#ifdef TALLY_WITH_CUDA
  return cuda::open_cupti_profiler();
#else
  throw DeviceError("this build has no CUDA");
#endif
}

}  // namespace tally::train
