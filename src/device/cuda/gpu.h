// The GPUs' answers to devices.h.
#pragma once

#include "src/device/devices.h"

namespace tally::train::cuda {

int device_count();
std::string unavailable_reason();
DeviceInfo device_info(int index);
std::string pci_address(int index);
std::unique_ptr<Stream> make_stream(int index);
std::unique_ptr<StreamEvents> make_events(Stream& stream, int count);
std::unique_ptr<StepGraph> make_step_graph(Stream& stream);
std::unique_ptr<SideStream> make_side_stream(Stream& stream);
void* allocate_host(size_t bytes);
void release_host(void* data);
// Throw DeviceError with one clear sentence where CUPTI cannot be used.
std::unique_ptr<DeviceProfiler> open_cupti_profiler();
std::unique_ptr<CounterProfiler> open_cupti_counters(int device);

}  // namespace tally::train::cuda
