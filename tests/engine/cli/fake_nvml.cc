// A library that answers as NVIDIA's libnvidia-ml.so.1 does. GPU 0 draws 250 W for all time, and its
// counter agrees. GPU 1 has no counter, and GPU 2 has neither counter nor sensor.
// GPU 0 is busy, at its power limit, which is the default. $FAKE_NVML has words, divided by commas:
//   broken: the driver does not answer. lies: the counter counts twice
//   hot, slow, brake: GPU 0 is too hot, is slowed by its hardware, or by a power brake
//   uncapped: it is not at its power limit. flickers: every second look finds it so
//   limited: the limit is below the default
//   low, lower: it is below the base clock 7 % of the time, half of the time
//   counted: the driver counts that time as that of the power limit
//   idle, unsaid: nothing runs on it; it does not say how busy it is
//   faulty: each look finds one more error that ECC corrected and one more replay on NVLink, and rows of its
//   memory were replaced. GPU 1 counts no fault, and GPU 0 no errors of NVLink's flow control
// $FAKE_NVML_PROCESSES: a file with lines "GPU PID". Each time that processes of a GPU are asked for,
// their number is written to the file's name and ".seen".
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr int kNotSupported = 3;
constexpr int kDriverNotLoaded = 9;
constexpr double kWatts = 250;

bool told(const char* what) {
  const char* given = std::getenv("FAKE_NVML");
  const std::string words = "," + std::string(given == nullptr ? "" : given) + ",";
  return words.find("," + std::string(what) + ",") != std::string::npos;
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uintptr_t index_of(void* device) {
  return reinterpret_cast<uintptr_t>(device) - 1;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return told("broken") ? kDriverNotLoaded : 0;
}
int nvmlShutdown() {
  return 0;
}
const char* nvmlErrorString(int code) {
  return code == kDriverNotLoaded ? "Driver Not Loaded" : "Unknown Error";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<uintptr_t>(index) + 1);
  return 0;
}
int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  std::strncpy(name, index_of(device) == 0 ? "Fake H100" : "Fake old GPU", length);
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (index_of(device) != 0) return kNotSupported;
  *millijoules =
      static_cast<unsigned long long>(1e9 + seconds() * kWatts * 1000 * (told("lies") ? 2 : 1));
  return 0;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (index_of(device) == 2) return kNotSupported;
  *milliwatts = static_cast<unsigned>(kWatts * 1000);
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
  if (index_of(device) != 0) return kNotSupported;
  *milliwatts = told("limited") ? 500000 : 700000;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  if (index_of(device) != 0) return kNotSupported;
  static int asked = 0;
  const bool capped = !told("uncapped") && !(told("flickers") && ++asked % 2 == 0);
  *reasons = (told("idle") ? 0x1 : 0) | (capped ? 0x4 : 0) | (told("slow") ? 0x8 : 0) |
             (told("hot") ? 0x20 : 0) | (told("brake") ? 0x80 : 0);
  return 0;
}
int nvmlDeviceGetPowerManagementDefaultLimit(void* device, unsigned* milliwatts) {
  if (index_of(device) != 0) return kNotSupported;
  *milliwatts = 700000;
  return 0;
}
int nvmlDeviceGetClockInfo(void* device, int kind, unsigned* mhz) {
  if (index_of(device) != 0) return kNotSupported;
  *mhz = kind == 1 ? 1410 : 2619;
  return 0;
}
struct Utilisation {
  unsigned gpu, memory;
};
int nvmlDeviceGetUtilizationRates(void* device, Utilisation* busy) {
  if (index_of(device) != 0 || told("unsaid")) return kNotSupported;
  *busy = {told("idle") ? 0u : 100u, 0};
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void* device, int kind, unsigned* mhz) {
  if (index_of(device) != 0) return kNotSupported;
  *mhz = kind == 1 ? 1980 : 2619;
  return 0;
}
struct ViolationTime {
  unsigned long long reference, violation;
};
int nvmlDeviceGetViolationStatus(void* device, int policy, ViolationTime* time) {
  constexpr int kPower = 0, kBelowBaseClocks = 11;
  const bool counted = policy == kPower && told("counted");
  if (index_of(device) != 0 || (policy != kBelowBaseClocks && !counted)) return kNotSupported;
  const double share = told("lower") ? 0.5 : told("low") ? 0.07 : 0;
  *time = {0, static_cast<unsigned long long>(seconds() * share * 1e9)};
  return 0;
}
struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, ProcessInfo* out) {
  const char* given = std::getenv("FAKE_NVML_PROCESSES");
  if (given == nullptr) return kNotSupported;
  std::ifstream in(given);
  std::vector<unsigned> pids;
  unsigned gpu = 0;
  for (unsigned pid = 0; in >> gpu >> pid;) {
    if (gpu == index_of(device)) pids.push_back(pid);
  }
  if (pids.size() > *count) return 7;
  *count = static_cast<unsigned>(pids.size());
  for (size_t i = 0; i < pids.size(); ++i) out[i] = {pids[i], 1, 0, 0};
  // When the last GPU is asked for, the look has taken note of the first one's.
  static size_t of_first = 0;
  if (index_of(device) == 0) of_first = pids.size();
  if (index_of(device) == 2 && of_first != 0)
    std::ofstream(std::string(given) + ".seen") << of_first << "\n";
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  if (index_of(device) == 2) return kNotSupported;
  std::snprintf(uuid, length, "GPU-%08x", static_cast<unsigned>(index_of(device)));
  return 0;
}
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  if (index_of(device) != 0 || sensor != 0) return kNotSupported;
  *celsius = told("hot") ? 92 : 61;
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void* device, int kind, int since, unsigned long long* errors) {
  constexpr int kCorrected = 0, kSinceDriver = 0;
  if (index_of(device) != 0 || since != kSinceDriver) return kNotSupported;
  static unsigned long long looks = 0;
  *errors = told("faulty") && kind == kCorrected ? ++looks : 0;
  return 0;
}
int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  if (index_of(device) != 0) return kNotSupported;
  *corrected = 0;
  *uncorrected = told("faulty") ? 2 : 0;
  *pending = told("faulty") ? 1 : 0;
  *failed = 0;
  return 0;
}
struct FieldValue {
  unsigned field, scope;
  long long time, latency;
  int type, result;
  union {
    unsigned number;
    unsigned long long large;
  };
};
int nvmlDeviceGetFieldValues(void* device, int count, FieldValue* values) {
  constexpr unsigned kFlit = 38, kReplay = 52;
  constexpr int kUnsignedInt = 1, kUnsignedLongLong = 3;
  if (index_of(device) != 0) return kNotSupported;
  static unsigned looks = 0;
  for (int i = 0; i < count; ++i) {
    values[i].result = values[i].field == kFlit ? kNotSupported : 0;
    values[i].large = ~0ULL;  // the unused half is anything
    values[i].type = values[i].field == kReplay ? kUnsignedInt : kUnsignedLongLong;
    if (values[i].field == kReplay) values[i].number = told("faulty") ? ++looks : 0;
    if (values[i].type == kUnsignedLongLong) values[i].large = 0;
  }
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::strncpy(version, "580.95.05", length);
  return 0;
}
int nvmlSystemGetCudaDriverVersion(int* version) {
  *version = 13010;
  return 0;
}

}  // extern "C"
