#include "src/device/cuda/gpu.h"

namespace tally::train {
namespace cuda {
namespace {

constexpr Gpus functions{.count = device_count,
                         .unavailable_reason = unavailable_reason,
                         .info = device_info,
                         .pci_address = pci_address,
                         .make_stream = make_stream,
                         .make_events = make_events,
                         .make_step_graph = make_step_graph,
                         .make_side_stream = make_side_stream,
                         .allocate_host = allocate_host,
                         .release_host = release_host,
                         .open_profiler = open_cupti_profiler,
                         .open_counters = open_cupti_counters};

}  // namespace
}  // namespace cuda

const Gpus* gpus() {
  return &cuda::functions;
}

}  // namespace tally::train
