// Energy, power and throttling of NVIDIA GPUs through NVML, which is opened at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

// What a GPU says at one moment. Empty: it does not say that.
struct GpuReading {
  std::optional<double> joules;  // since the driver was loaded
  std::optional<double> watts;
  uint64_t throttle = 0;  // NVML's bits
};

class GpuEnergy {
 public:
  // Opens libnvidia-ml.so.1. The status says why there are no GPUs to read.
  static Status open(std::unique_ptr<GpuEnergy>* out);
  virtual ~GpuEnergy() = default;
  virtual size_t count() const = 0;
  virtual std::string name(size_t gpu) const = 0;
  virtual std::optional<double> limit_watts(size_t gpu) const = 0;
  virtual GpuReading read(size_t gpu) const = 0;
};

// "power cap, thermal slowdown"; "none". Idle clocks and clocks that a person set are no throttling.
std::string throttle_words(uint64_t bits);

}  // namespace tally
