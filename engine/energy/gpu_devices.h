// The state of NVIDIA's GPUs, read through NVML, which is opened at run time: energy, power,
// clocks, throttling, and the processes that use them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

// A GPU's readings at one moment. Empty: the GPU does not give that one.
struct GpuReading {
  std::optional<double> joules;  // since the driver was loaded
  std::optional<double> watts;
  std::optional<unsigned> sm_mhz;   // the clock of its SMs
  std::optional<unsigned> celsius;  // its temperature
  uint64_t throttle = 0;            // NVML's bits
};

// A GPU's work at one moment, and how long it has worked so since the driver was loaded. Empty: the
// GPU does not say that.
struct GpuWork {
  uint64_t throttle = 0;             // NVML's bits
  std::optional<unsigned> busy;      // percent of the last moments in which a kernel ran
  std::optional<double> below_base;  // seconds in which it was held below its base clock
  std::optional<double> capped;      // seconds in which its power limit slowed it
};

// The settings that somebody has made, or that the GPU's kind gives. Empty: the GPU does not say
// that.
struct GpuSettings {
  std::optional<double> limit_watts, default_limit_watts;
  std::optional<unsigned> max_sm_mhz, max_memory_mhz;
  // The clocks of the SMs that applications get.
  std::optional<unsigned> application_mhz, default_application_mhz;
};

// A GPU's own count of one kind of its faults. Empty: the GPU does not count that.
struct GpuCounter {
  std::string name;
  std::optional<uint64_t> value;
};

class GpuDevices {
 public:
  // Opens libnvidia-ml.so.1. The status says why there are no GPUs to read.
  static Status open(std::unique_ptr<GpuDevices>* out);
  virtual ~GpuDevices() = default;
  virtual size_t count() const = 0;
  // The GPU at a place on the PCI bus, as "0000:0f:00.0"; empty: NVML does not find it.
  virtual std::optional<size_t> at_pci(const std::string& address) const = 0;
  virtual std::string name(size_t gpu) const = 0;
  virtual GpuSettings settings(size_t gpu) const = 0;
  virtual GpuReading read(size_t gpu) const = 0;
  virtual GpuWork work(size_t gpu) const = 0;
  // "GPU-8f2e03a1-..."; empty: unknown.
  virtual std::string uuid(size_t gpu) const = 0;
  // Always the same names in the same order: errors of memory and of NVLink since the driver was
  // loaded, rows of memory that were replaced in the GPU's life.
  virtual std::vector<GpuCounter> counters(size_t gpu) const = 0;
  // The processes that compute on the GPU, as far as NVML and the kernel show them to us.
  virtual std::vector<int> processes(size_t gpu) const = 0;
  // "580.95.05", and the version of CUDA that it supports, "13.0". Empty: unknown.
  virtual std::string driver() const = 0;
  virtual std::string cuda() const = 0;
};

// "power cap, thermal slowdown"; "none". Idle clocks and clocks that a person set are no
// throttling.
std::string throttle_words(uint64_t bits);

// Whether the bits say that the power limit holds the clocks down.
bool power_capped(uint64_t bits);

// Whether it computes. Where it does not say how busy it is, a GPU without idle clocks does.
bool is_busy(const GpuWork& work);

// The part of the bits that says that a GPU is slower than others of its kind. The power cap is how
// a GPU normally works under full load. It counts if the limit was set below the default.
uint64_t slowing_bits(uint64_t bits, const GpuSettings& settings);

}  // namespace tally
