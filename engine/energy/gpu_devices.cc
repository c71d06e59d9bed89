#include "engine/energy/gpu_devices.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#ifndef TALLY_STATIC
#include <dlfcn.h>
#endif

namespace tally {
#ifdef TALLY_STATIC

Status GpuDevices::open(std::unique_ptr<GpuDevices>*) {
  return Status::error(
      "this tally is a static program, which cannot open the driver's library libnvidia-ml.so.1");
}

#else

namespace {

// The part of NVML's interface that is used. Its numbers and types are stable.
using Device = void*;
constexpr int kSuccess = 0;
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;
constexpr int kPowerPolicy = 0;       // NVML_PERF_POLICY_POWER
constexpr int kBelowBaseClocks = 11;  // NVML_PERF_POLICY_TOTAL_BASE_CLOCKS

struct ViolationTime {
  unsigned long long reference = 0;  // us
  unsigned long long violation = 0;  // ns
};
struct Utilisation {
  unsigned gpu = 0, memory = 0;  // percent
};
// A process of nvmlDeviceGetComputeRunningProcesses_v2 and _v3.
struct ProcessInfo {
  unsigned pid = 0;
  unsigned long long memory = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};

// nvmlDeviceGetTotalEccErrors: kinds of errors; counted since the driver was loaded.
constexpr int kCorrected = 0, kUncorrected = 1, kSinceDriver = 0;
// A value of nvmlDeviceGetFieldValues, and the fields of NVLink's errors over all its links.
struct FieldValue {
  unsigned field = 0, scope = 0;
  long long time = 0, latency = 0;
  int type = 0, result = 0;
  unsigned long long value = 0;  // a union
};
constexpr int kUnsignedInt = 1, kUnsignedLong = 2, kUnsignedLongLong = 3;  // types
constexpr std::array<std::pair<const char*, unsigned>, 4> kNvlinkErrors = {
    {{"nvlink_crc_flit", 38},
     {"nvlink_crc_data", 45},
     {"nvlink_replay", 52},
     {"nvlink_recovery", 59}}};

struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*handle_at)(const char*, Device*) = nullptr;
  int (*index)(Device, unsigned*) = nullptr;
  // Optional: old drivers and some GPUs lack them.
  int (*energy)(Device, unsigned long long*) = nullptr;  // mJ
  int (*power)(Device, unsigned*) = nullptr;             // mW
  int (*limit)(Device, unsigned*) = nullptr;             // mW
  int (*default_limit)(Device, unsigned*) = nullptr;     // mW
  int (*throttle)(Device, unsigned long long*) = nullptr;
  int (*max_clock)(Device, int, unsigned*) = nullptr;  // MHz
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*utilisation)(Device, Utilisation*) = nullptr;
  int (*application_clock)(Device, int, unsigned*) = nullptr;
  int (*default_clock)(Device, int, unsigned*) = nullptr;
  int (*violation)(Device, int, ViolationTime*) = nullptr;
  int (*processes)(Device, unsigned*, ProcessInfo*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;  // degrees Celsius
  int (*ecc_errors)(Device, int, int, unsigned long long*) = nullptr;
  int (*remapped_rows)(Device, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  int (*fields)(Device, int, FieldValue*) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  int (*cuda)(int*) = nullptr;
  const char* (*error)(int) = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

void find_optional(void* library, Nvml* nvml) {
  find(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->handle_at);
  find(library, "nvmlDeviceGetIndex", &nvml->index);
  find(library, "nvmlDeviceGetTotalEnergyConsumption", &nvml->energy);
  find(library, "nvmlDeviceGetPowerUsage", &nvml->power);
  find(library, "nvmlDeviceGetEnforcedPowerLimit", &nvml->limit);
  find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml->throttle);
  find(library, "nvmlDeviceGetPowerManagementDefaultLimit", &nvml->default_limit);
  find(library, "nvmlDeviceGetMaxClockInfo", &nvml->max_clock);
  find(library, "nvmlDeviceGetClockInfo", &nvml->clock);
  find(library, "nvmlDeviceGetUtilizationRates", &nvml->utilisation);
  find(library, "nvmlDeviceGetApplicationsClock", &nvml->application_clock);
  find(library, "nvmlDeviceGetDefaultApplicationsClock", &nvml->default_clock);
  find(library, "nvmlDeviceGetViolationStatus", &nvml->violation);
  if (!find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->processes))
    find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->processes);
  find(library, "nvmlDeviceGetUUID", &nvml->uuid);
  find(library, "nvmlDeviceGetTemperature", &nvml->temperature);
  find(library, "nvmlDeviceGetTotalEccErrors", &nvml->ecc_errors);
  find(library, "nvmlDeviceGetRemappedRows", &nvml->remapped_rows);
  find(library, "nvmlDeviceGetFieldValues", &nvml->fields);
  find(library, "nvmlSystemGetDriverVersion", &nvml->driver);
  find(library, "nvmlSystemGetCudaDriverVersion", &nvml->cuda);
  find(library, "nvmlErrorString", &nvml->error);
}

class RealGpuDevices final : public GpuDevices {
 public:
  RealGpuDevices(void* library, const Nvml& nvml, std::vector<Device> devices)
      : library_(library), nvml_(nvml), devices_(std::move(devices)) {}
  ~RealGpuDevices() override {
    nvml_.shutdown();
    dlclose(library_);
  }
  RealGpuDevices(const RealGpuDevices&) = delete;
  RealGpuDevices& operator=(const RealGpuDevices&) = delete;

  size_t count() const override { return devices_.size(); }
  std::optional<size_t> at_pci(const std::string& address) const override {
    Device device = nullptr;
    unsigned index = 0;
    if (nvml_.handle_at == nullptr || nvml_.index == nullptr ||
        nvml_.handle_at(address.c_str(), &device) != kSuccess ||
        nvml_.index(device, &index) != kSuccess || index >= devices_.size())
      return {};
    return index;
  }
  std::string name(size_t gpu) const override {
    std::array<char, 96> text{};
    if (nvml_.name(devices_[gpu], text.data(), text.size()) != kSuccess) return "GPU";
    return text.data();
  }
  GpuSettings settings(size_t gpu) const override {
    GpuSettings settings;
    settings.limit_watts = milli(nvml_.limit, gpu);
    settings.default_limit_watts = milli(nvml_.default_limit, gpu);
    settings.max_sm_mhz = clock(nvml_.max_clock, kSmClock, gpu);
    settings.max_memory_mhz = clock(nvml_.max_clock, kMemoryClock, gpu);
    settings.application_mhz = clock(nvml_.application_clock, kSmClock, gpu);
    settings.default_application_mhz = clock(nvml_.default_clock, kSmClock, gpu);
    return settings;
  }
  GpuReading read(size_t gpu) const override {
    GpuReading reading;
    unsigned long long value = 0;
    if (nvml_.energy != nullptr && nvml_.energy(devices_[gpu], &value) == kSuccess)
      reading.joules = static_cast<double>(value) / 1000;
    reading.watts = milli(nvml_.power, gpu);
    reading.sm_mhz = clock(nvml_.clock, kSmClock, gpu);
    constexpr int kSensorOfGpu = 0;
    reading.celsius = clock(nvml_.temperature, kSensorOfGpu, gpu);
    if (nvml_.throttle != nullptr && nvml_.throttle(devices_[gpu], &value) == kSuccess)
      reading.throttle = value;
    return reading;
  }
  GpuWork work(size_t gpu) const override {
    GpuWork work;
    unsigned long long bits = 0;
    if (nvml_.throttle != nullptr && nvml_.throttle(devices_[gpu], &bits) == kSuccess)
      work.throttle = bits;
    Utilisation busy;
    if (nvml_.utilisation != nullptr && nvml_.utilisation(devices_[gpu], &busy) == kSuccess)
      work.busy = busy.gpu;
    work.below_base = violation(kBelowBaseClocks, gpu);
    work.capped = violation(kPowerPolicy, gpu);
    return work;
  }
  std::vector<int> processes(size_t gpu) const override {
    std::vector<int> pids;
    std::array<ProcessInfo, 256> found{};
    auto count = static_cast<unsigned>(found.size());
    if (nvml_.processes == nullptr ||
        nvml_.processes(devices_[gpu], &count, found.data()) != kSuccess)
      return pids;
    for (size_t i = 0; i < count && i < found.size(); ++i)
      pids.push_back(static_cast<int>(found[i].pid));
    return pids;
  }
  std::string uuid(size_t gpu) const override {
    std::array<char, 96> text{};
    if (nvml_.uuid == nullptr || nvml_.uuid(devices_[gpu], text.data(), text.size()) != kSuccess)
      return {};
    return text.data();
  }
  std::vector<GpuCounter> counters(size_t gpu) const override {
    std::vector<GpuCounter> all = {{"ecc_corrected", ecc_errors(kCorrected, gpu)},
                                   {"ecc_uncorrected", ecc_errors(kUncorrected, gpu)}};
    std::array<unsigned, 4> rows{};
    const bool remaps =
        nvml_.remapped_rows != nullptr &&
        nvml_.remapped_rows(devices_[gpu], &rows[0], &rows[1], &rows[2], &rows[3]) == kSuccess;
    constexpr std::array<const char*, 4> kRows = {"rows_remapped_corrected",
                                                  "rows_remapped_uncorrected", "rows_remap_pending",
                                                  "rows_remap_failed"};
    for (size_t i = 0; i < kRows.size(); ++i)
      all.push_back({kRows[i], remaps ? std::optional<uint64_t>(rows[i]) : std::nullopt});
    for (const auto& [name, field] : kNvlinkErrors) all.push_back({name, field_of(field, gpu)});
    return all;
  }
  std::string driver() const override {
    std::array<char, 96> text{};
    if (nvml_.driver == nullptr || nvml_.driver(text.data(), text.size()) != kSuccess) return {};
    return text.data();
  }
  std::string cuda() const override {
    int version = 0;  // 13000
    if (nvml_.cuda == nullptr || nvml_.cuda(&version) != kSuccess) return {};
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  }

 private:
  std::optional<unsigned> clock(int (*function)(Device, int, unsigned*), int kind,
                                size_t gpu) const {
    unsigned value = 0;
    if (function == nullptr || function(devices_[gpu], kind, &value) != kSuccess) return {};
    return value;
  }
  // Seconds since the driver was loaded.
  std::optional<double> violation(int policy, size_t gpu) const {
    constexpr double kNano = 1e-9;
    ViolationTime time;
    if (nvml_.violation == nullptr || nvml_.violation(devices_[gpu], policy, &time) != kSuccess)
      return {};
    return static_cast<double>(time.violation) * kNano;
  }
  std::optional<uint64_t> ecc_errors(int kind, size_t gpu) const {
    unsigned long long count = 0;
    if (nvml_.ecc_errors == nullptr ||
        nvml_.ecc_errors(devices_[gpu], kind, kSinceDriver, &count) != kSuccess)
      return {};
    return count;
  }
  std::optional<uint64_t> field_of(unsigned field, size_t gpu) const {
    FieldValue value;
    value.field = field;
    if (nvml_.fields == nullptr || nvml_.fields(devices_[gpu], 1, &value) != kSuccess ||
        value.result != kSuccess)
      return {};
    if (value.type == kUnsignedInt) return value.value & 0xffffffff;
    if (value.type == kUnsignedLong || value.type == kUnsignedLongLong) return value.value;
    return {};
  }
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

Status GpuDevices::open(std::unique_ptr<GpuDevices>* out) {
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
  find_optional(library, &nvml);
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
    *out = std::make_unique<RealGpuDevices>(library, nvml, std::move(devices));
    return Status::ok();
  }
  nvml.shutdown();
  return close_with(code == kSuccess ? "this machine has no NVIDIA GPU" : "NVML: " + words(code));
}

#endif

namespace {
constexpr uint64_t kIdle = 0x1;
constexpr uint64_t kPowerCap = 0x4;
}  // namespace

bool power_capped(uint64_t bits) {
  return (bits & kPowerCap) != 0;
}

bool is_busy(const GpuWork& work) {
  constexpr unsigned kHalf = 50;  // percent
  return work.busy ? *work.busy >= kHalf : (work.throttle & kIdle) == 0;
}

uint64_t slowing_bits(uint64_t bits, const GpuSettings& settings) {
  constexpr uint64_t kAlways = 0x8 | 0x20 | 0x40 | 0x80;
  const bool lowered = settings.limit_watts && settings.default_limit_watts &&
                       *settings.limit_watts < *settings.default_limit_watts - 0.5;
  return bits & (lowered ? kAlways | kPowerCap : kAlways);
}

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
