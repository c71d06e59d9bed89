// The questions of the device layer to each kind of device. In builds with CUDA, cuda/gpu.cc has
// the answers of GPUs.
#pragma once

#include <memory>
#include <string>

#include "src/device/counter_profiler.h"
#include "src/device/events.h"
#include "src/device/graph.h"
#include "src/device/profiler.h"
#include "src/device/side_stream.h"
#include "src/device/stream.h"

namespace tally::train {

namespace cpu {

DeviceInfo device_info();
std::unique_ptr<Stream> make_stream();
void convert_elements(const Tensor& from, const Tensor& to);

}  // namespace cpu

// The functions that need LibTorch.
struct Cpu {
  DeviceInfo (*info)() = nullptr;
  std::unique_ptr<Stream> (*make_stream)() = nullptr;
  void (*convert_elements)(const Tensor& from, const Tensor& to) = nullptr;  // convert.h
};
// Null in programs without LibTorch, whose only streams count. A weak function, which
// cpu/cpu_stream.cc replaces.
const Cpu* cpu_device();

struct Gpus {
  int (*count)() = nullptr;
  std::string (*unavailable_reason)() = nullptr;
  DeviceInfo (*info)(int index) = nullptr;
  std::string (*pci_address)(int index) = nullptr;  // empty: the driver does not say
  std::unique_ptr<Stream> (*make_stream)(int index) = nullptr;
  std::unique_ptr<StreamEvents> (*make_events)(Stream& stream, int count) = nullptr;
  std::unique_ptr<StepGraph> (*make_step_graph)(Stream& stream) = nullptr;
  std::unique_ptr<SideStream> (*make_side_stream)(Stream& stream) = nullptr;
  void* (*allocate_host)(size_t bytes) = nullptr;  // page-locked; throws OutOfMemory
  void (*release_host)(void* data) = nullptr;
  std::unique_ptr<DeviceProfiler> (*open_profiler)() = nullptr;
  std::unique_ptr<CounterProfiler> (*open_counters)(int index) = nullptr;
};
// Null in builds without CUDA, where no stream is a GPU's. A weak function, which cuda/gpu.cc
// replaces: it answers before main(), too.
const Gpus* gpus();

}  // namespace tally::train
