#include "src/measure/system_info.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "src/measure/control_groups.h"

namespace tally::train {
namespace {

// The whole text as a positive number, else 0. The first number of a list ("4,2", as
// OMP_NUM_THREADS may be) counts.
int positive(const char* text) {
  if (text == nullptr) return 0;
  char* end = nullptr;
  const long n = std::strtol(text, &end, 10);
  return end != text && (*end == 0 || *end == ',') && n > 0 && n < 1 << 20 ? static_cast<int>(n)
                                                                           : 0;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

std::string loaded_cudnn_version() {
  void* library = dlopen("libcudnn.so.9", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return "";
  std::string version;
  if (void* symbol = dlsym(library, "cudnnGetVersion")) {
    const size_t v = reinterpret_cast<size_t (*)()>(symbol)();
    version = fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
  }
  dlclose(library);
  return version;
}

int nvidia_gpus_of_host(const std::string& root) {
  int gpus = 0;
  std::error_code none;
  // The driver lists GPUs in /proc; containers may show only their device files.
  for (const auto& entry :
       std::filesystem::directory_iterator(root + "proc/driver/nvidia/gpus", none))
    gpus += entry.is_directory() ? 1 : 0;
  if (gpus > 0) return gpus;
  for (const auto& entry : std::filesystem::directory_iterator(root + "dev", none)) {
    const std::string name = entry.path().filename();
    const bool numbered = name.size() > 6 && name.rfind("nvidia", 0) == 0 &&
                          name.find_first_not_of("0123456789", 6) == std::string::npos;
    gpus += numbered ? 1 : 0;
  }
  return gpus;
}

size_t peak_resident_bytes() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

namespace {

// Processors' worth of time that the control groups around this process leave it; infinity: all.
double processor_share(const std::string& root) {
  double share = INFINITY;
  for (const auto& group : control_groups(root, "cpu")) {
    size_t quota = no_number, period = no_number;
    if (std::ifstream in(group / "cpu.max"); in) {
      if (!(in >> quota >> period)) continue;  // "max 100000"
    } else {
      quota = number_in(group / "cpu.cfs_quota_us");  // -1: no limit
      period = number_in(group / "cpu.cfs_period_us");
    }
    if (quota == no_number || period == no_number || period == 0) continue;
    share = std::min(share, static_cast<double>(quota) / static_cast<double>(period));
  }
  return share;
}

}  // namespace

bool threads_are_given() {
  return positive(std::getenv("OMP_NUM_THREADS")) > 0 ||
         positive(std::getenv("SLURM_CPUS_PER_TASK")) > 0;
}

int default_threads(int local_size, const std::string& root) {
  if (const int n = positive(std::getenv("OMP_NUM_THREADS"))) return n;
  if (const int n = positive(std::getenv("SLURM_CPUS_PER_TASK"))) return n;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 1) return 1;
  const int processors = CPU_COUNT(&set);
  const bool shared = processors >= sysconf(_SC_NPROCESSORS_ONLN);
  const int processes = std::max(1, local_size);
  const int free = shared ? std::max(1, processors / processes) : processors;
  const double share = processor_share(root) / processes;
  return share < free ? std::max(1, static_cast<int>(share)) : free;
}

}  // namespace tally::train
