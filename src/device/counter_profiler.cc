#include "src/device/counter_profiler.h"

#ifdef TALLY_WITH_CUDA
#include "src/device/cuda/cupti_counters.h"
#endif

namespace tally::train {

std::unique_ptr<CounterProfiler> CounterProfiler::open(Stream& stream) {
  if (!stream.device().is_cuda())
    throw DeviceError("hardware counters are those of a GPU, and this run is on the CPU");
#ifdef TALLY_WITH_CUDA
  return cuda::open_cupti_counters(stream.device().index);
#else
  throw DeviceError("this build has no CUDA");
#endif
}

}  // namespace tally::train
