#include "engine/energy/gpu_energy.h"

#include <fmt/format.h>

#include <array>

#ifndef TALLY_STATIC
#include <dlfcn.h>
#endif

namespace tally {
#ifdef TALLY_STATIC

Status GpuEnergy::open(std::unique_ptr<GpuEnergy>*) {
  return Status::error(
      "this tally is a static program, which cannot open the driver's library libnvidia-ml.so.1");
}

#else

namespace {

// The part of NVML's interface that is used. Its numbers and types are stable.
using Device = void*;
constexpr int kSuccess = 0;

struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  // Optional: old drivers and some GPUs lack them.
  int (*energy)(Device, unsigned long long*) = nullptr;  // mJ
  int (*power)(Device, unsigned*) = nullptr;             // mW
  int (*limit)(Device, unsigned*) = nullptr;             // mW
  int (*throttle)(Device, unsigned long long*) = nullptr;
  const char* (*error)(int) = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

class RealGpuEnergy final : public GpuEnergy {
 public:
  RealGpuEnergy(void* library, const Nvml& nvml, std::vector<Device> devices)
      : library_(library), nvml_(nvml), devices_(std::move(devices)) {}
  ~RealGpuEnergy() override {
    nvml_.shutdown();
    dlclose(library_);
  }
  RealGpuEnergy(const RealGpuEnergy&) = delete;
  RealGpuEnergy& operator=(const RealGpuEnergy&) = delete;

  size_t count() const override { return devices_.size(); }
  std::string name(size_t gpu) const override {
    std::array<char, 96> text{};
    if (nvml_.name(devices_[gpu], text.data(), text.size()) != kSuccess) return "GPU";
    return text.data();
  }
  std::optional<double> limit_watts(size_t gpu) const override { return milli(nvml_.limit, gpu); }
  GpuReading read(size_t gpu) const override {
    GpuReading reading;
    unsigned long long value = 0;
    if (nvml_.energy != nullptr && nvml_.energy(devices_[gpu], &value) == kSuccess)
      reading.joules = static_cast<double>(value) / 1000;
    reading.watts = milli(nvml_.power, gpu);
    if (nvml_.throttle != nullptr && nvml_.throttle(devices_[gpu], &value) == kSuccess)
      reading.throttle = value;
    return reading;
  }

 private:
  std::optional<double> milli(int (*function)(Device, unsigned*), size_t gpu) const {
    unsigned value = 0;
    if (function == nullptr || function(devices_[gpu], &value) != kSuccess) return {};
    return value / 1000.0;
  }

  void* library_;
  Nvml nvml_;
  std::vector<Device> devices_;
};

}  // namespace

Status GpuEnergy::open(std::unique_ptr<GpuEnergy>* out) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status::error("there is no NVIDIA driver (libnvidia-ml.so.1)");
  Nvml nvml;
  const auto close_with = [&](std::string why) {
    dlclose(library);
    return Status::error(std::move(why));
  };
  if (!find(library, "nvmlInit_v2", &nvml.init) || !find(library, "nvmlShutdown", &nvml.shutdown) ||
      !find(library, "nvmlDeviceGetCount_v2", &nvml.count) ||
      !find(library, "nvmlDeviceGetHandleByIndex_v2", &nvml.handle) ||
      !find(library, "nvmlDeviceGetName", &nvml.name))
    return close_with("libnvidia-ml.so.1 is too old");
  find(library, "nvmlDeviceGetTotalEnergyConsumption", &nvml.energy);
  find(library, "nvmlDeviceGetPowerUsage", &nvml.power);
  find(library, "nvmlDeviceGetEnforcedPowerLimit", &nvml.limit);
  find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.throttle);
  find(library, "nvmlErrorString", &nvml.error);
  const auto words = [&](int code) {
    return nvml.error == nullptr ? fmt::format("error {}", code) : std::string(nvml.error(code));
  };
  if (const int code = nvml.init(); code != kSuccess) return close_with("NVML: " + words(code));
  unsigned count = 0;
  std::vector<Device> devices;
  int code = nvml.count(&count);
  for (unsigned i = 0; code == kSuccess && i < count; ++i)
    code = nvml.handle(i, &devices.emplace_back());
  if (code == kSuccess && count > 0) {
    *out = std::make_unique<RealGpuEnergy>(library, nvml, std::move(devices));
    return Status::ok();
  }
  nvml.shutdown();
  return close_with(code == kSuccess ? "this machine has no NVIDIA GPU" : "NVML: " + words(code));
}

#endif

std::string throttle_words(uint64_t bits) {
  struct Reason {
    uint64_t bit;
    const char* word;
  };
  constexpr std::array<Reason, 6> kReasons = {{{0x4, "power cap"},
                                               {0x8, "hardware slowdown"},
                                               {0x10, "sync boost"},
                                               {0x20, "thermal slowdown"},
                                               {0x40, "hardware thermal slowdown"},
                                               {0x80, "power brake"}}};
  std::string words;
  for (const Reason& reason : kReasons) {
    if ((bits & reason.bit) != 0) words += (words.empty() ? "" : ", ") + std::string(reason.word);
  }
  return words.empty() ? "none" : words;
}

}  // namespace tally
