#include "engine/execute/machine_facts.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "engine/base/files.h"
#include "engine/base/host.h"
#include "engine/base/text.h"
#include "engine/energy/gpu_devices.h"

namespace tally {
namespace {

std::string first_line_of_file(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return std::string(strip(line));
}

// "KEY : VALUE" lines, as in /proc/cpuinfo; the first value of each key.
std::map<std::string, std::string> read_keys(const std::string& path) {
  std::map<std::string, std::string> keys;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    keys.try_emplace(std::string(strip(line.substr(0, colon))), strip(line.substr(colon + 1)));
  }
  return keys;
}

// "4 x NVIDIA H100", "2 x A, 1 x B".
std::string counted(const std::vector<std::string>& names) {
  std::map<std::string, int> count;
  for (const std::string& name : names) ++count[name];
  std::vector<std::string> parts;
  for (const auto& [name, times] : count) parts.push_back(fmt::format("{} x {}", times, name));
  return join(parts, ", ");
}

std::string cpus(const std::string& root) {
  const auto info = read_keys(root + "/proc/cpuinfo");
  const auto model = info.find("model name");
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int usable = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
  const std::string name = model == info.end() ? "" : model->second + ", ";
  return fmt::format("{}{} logical, {} usable", name, sysconf(_SC_NPROCESSORS_ONLN), usable);
}

std::string gpus(const std::string& root, const GpuDevices* devices) {
  std::vector<std::string> names;
  for (size_t gpu = 0; devices != nullptr && gpu < devices->count(); ++gpu)
    names.push_back(devices->name(gpu));
  if (!names.empty()) return counted(names);
  for (const std::string& path : paths_matching(root + "/proc/driver/nvidia/gpus/*/information")) {
    const auto keys = read_keys(path);
    if (const auto model = keys.find("Model"); model != keys.end()) names.push_back(model->second);
  }
  return counted(names);
}

std::string fabric(const std::string& root) {
  std::vector<std::string> names;
  for (const std::string& port : paths_matching(root + "/sys/class/infiniband/*/ports/*")) {
    const std::string device = port.substr(0, port.find("/ports/"));
    std::string text = fmt::format("{} {}", device.substr(device.rfind('/') + 1),
                                   first_line_of_file(port + "/rate"));
    // "4: ACTIVE"
    const std::string state = first_line_of_file(port + "/state");
    if (const size_t colon = state.find(": ");
        colon != std::string::npos && state.substr(colon + 2) != "ACTIVE")
      text += " " + state.substr(colon + 2);
    names.push_back(std::move(text));
  }
  return join(names, ", ");
}

std::string environment_that_matters() {
  constexpr std::array<const char*, 18> kPrefixes = {
      "OMP_",  "KMP_",    "GOMP_",  "MKL_",   "OPENBLAS_",   "NCCL_",
      "UCX_",  "OMPI_",   "I_MPI_", "MPICH_", "PSM2_",       "FI_",
      "CUDA_", "MALLOC_", "CC=",    "CXX=",   "LD_PRELOAD=", "GLIBC_TUNABLES="};
  std::set<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (std::ranges::any_of(kPrefixes,
                            [&](const char* prefix) { return starts_with(text, prefix); }))
      kept.insert(one_line(text));
  }
  return join({kept.begin(), kept.end()}, " ");
}

// A command that has been started. Commands that were started one after the other run at the same
// time.
class Started {
 public:
  explicit Started(const std::string& command)
      : pipe_(popen((command + " 2>/dev/null </dev/null").c_str(), "r")) {}
  ~Started() { close(); }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  // The first line of its output that has the text.
  std::string line_with(const std::string& text = "") {
    std::string found;
    std::array<char, 256> part{};
    while (pipe_ != nullptr && std::fgets(part.data(), part.size(), pipe_) != nullptr) {
      const std::string line(strip(part.data()));
      if (found.empty() && line.find(text) != std::string::npos) found = line;
    }
    return close() ? found : std::string();
  }

 private:
  bool close() {
    const bool good = pipe_ != nullptr && pclose(pipe_) == 0;
    pipe_ = nullptr;
    return good;
  }
  FILE* pipe_;
};

// The commit of the workflow's folder, and the versions of what it may be built with.
class Programs {
 public:
  explicit Programs(const std::string& home)
      : git_("git -C " + shell_quote(home.empty() ? "." : home) + " "),
        hash_(git_ + "rev-parse --short=12 HEAD"),
        changed_(git_ + "status --porcelain -uno -- ."),
        // A compiler that asks a licence server may hang.
        cc_("timeout 5 cc --version"),
        cxx_("timeout 5 c++ --version"),
        nvcc_("timeout 5 nvcc --version"),
        // Open MPI's wrapper, and those of MPICH and Intel, which name their MPI in the first line.
        open_mpi_("timeout 5 mpicc --showme:version"),
        mpi_("timeout 5 mpicc -v") {}

  // "1a2b3c4d, changed"
  std::string commit() {
    const std::string hash = hash_.line_with();
    return hash.empty() || changed_.line_with().empty() ? hash : hash + ", changed";
  }
  std::string cc() { return cc_.line_with(); }
  std::string cxx() { return cxx_.line_with(); }
  std::string nvcc() { return nvcc_.line_with("release"); }
  std::string mpi() {
    const std::string open_mpi = open_mpi_.line_with("MPI");
    return open_mpi.empty() ? mpi_.line_with("MPI") : open_mpi;
  }

 private:
  std::string git_;
  Started hash_, changed_, cc_, cxx_, nvcc_, open_mpi_, mpi_;
};

// "2 x 500 W of 700 W"
std::string power_limits(const GpuDevices& gpus) {
  std::vector<std::string> limits;
  for (size_t gpu = 0; gpu < gpus.count(); ++gpu) {
    const GpuSettings settings = gpus.settings(gpu);
    if (!settings.limit_watts) continue;
    std::string text = fmt::format("{:.0f} W", *settings.limit_watts);
    if (settings.default_limit_watts && *settings.default_limit_watts != *settings.limit_watts)
      text += fmt::format(" of {:.0f} W", *settings.default_limit_watts);
    limits.push_back(std::move(text));
  }
  return counted(limits);
}

// "2 x SM 1980 MHz, memory 2619 MHz", and what somebody has set.
std::string gpu_clocks(const GpuDevices& gpus) {
  std::vector<std::string> clocks;
  for (size_t gpu = 0; gpu < gpus.count(); ++gpu) {
    const GpuSettings settings = gpus.settings(gpu);
    if (!settings.max_sm_mhz) continue;
    std::string text = fmt::format("SM {} MHz", *settings.max_sm_mhz);
    if (settings.max_memory_mhz) text += fmt::format(", memory {} MHz", *settings.max_memory_mhz);
    if (settings.application_mhz && settings.default_application_mhz &&
        *settings.application_mhz != *settings.default_application_mhz)
      text += fmt::format(", applications set to {} MHz", *settings.application_mhz);
    clocks.push_back(std::move(text));
  }
  return counted(clocks);
}

// "0.80 to 3.50 GHz, base 2.40 GHz"
std::string cpu_clocks(const std::string& root) {
  const std::string cpu = root + "/sys/devices/system/cpu/cpu0/";
  const auto ghz = [&](const char* name, double unit) {
    return std::atof(first_line_of_file(cpu + name).c_str()) * unit;
  };
  const double low = ghz("cpufreq/scaling_min_freq", 1e-6);
  const double high = ghz("cpufreq/scaling_max_freq", 1e-6);
  double base = ghz("cpufreq/base_frequency", 1e-6);
  if (base == 0) base = ghz("acpi_cppc/nominal_freq", 1e-3);
  std::string text = high == 0 ? "" : fmt::format("{:.2f} to {:.2f} GHz", low, high);
  if (base > 0) text += fmt::format("{}base {:.2f} GHz", text.empty() ? "" : ", ", base);
  return text;
}

std::string cpu_boost(const std::string& root) {
  const std::string folder = root + "/sys/devices/system/cpu/";
  const std::string boost = first_line_of_file(folder + "cpufreq/boost");
  const std::string none = first_line_of_file(folder + "intel_pstate/no_turbo");
  if (boost.empty() && none.empty()) return {};
  return boost == "1" || none == "0" ? "on" : "off";
}

// Whether the fact differs from run to run on one machine, so that a comparison leaves it out.
bool is_momentary(const std::string& fact) {
  return starts_with(fact, "Load ");
}

}  // namespace

std::string load_average(const std::string& root) {
  const std::string line = first_line_of_file(root + "/proc/loadavg");
  const std::vector<std::string> fields = split_strip(line, " ");
  return fields.size() < 3 ? "" : fields[0] + " " + fields[1] + " " + fields[2];
}

Facts machine_facts(const std::string& home, const GpuDevices* gpu_devices,
                    const std::string& no_gpus, const std::string& root) {
  Programs programs(home);
  Facts facts;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) facts.emplace_back(name, value);
  };
  utsname system{};
  const bool known = uname(&system) == 0;
  add("Host", host_identity());
  add("Kernel", known ? fmt::format("{} {}", system.sysname, system.release) : "");
  add("Architecture", known ? system.machine : "");
  add("CPU", cpus(root));
  add("CPU governor",
      first_line_of_file(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  add("CPU boost", cpu_boost(root));
  add("CPU clocks", cpu_clocks(root));
  const auto memory = read_keys(root + "/proc/meminfo");
  if (const auto total = memory.find("MemTotal"); total != memory.end()) {
    constexpr double kPerGiB = 1024.0 * 1024.0;
    add("Memory", fmt::format("{:.1f} GiB", std::atof(total->second.c_str()) / kPerGiB));
  }
  const std::string gpu_names = gpus(root, gpu_devices);
  add("GPUs", gpu_names);
  if (gpu_devices == nullptr && !gpu_names.empty()) add(kUnwatchedGpus, no_gpus);
  add("GPU driver", first_line_of_file(root + "/proc/driver/nvidia/version"));
  if (gpu_devices != nullptr) {
    if (facts.back().first != "GPU driver") add("GPU driver", gpu_devices->driver());
    add("CUDA of the driver", gpu_devices->cuda());
    add("GPU clocks", gpu_clocks(*gpu_devices));
    add("GPU power limits", power_limits(*gpu_devices));
  }
  add("Fabric", fabric(root));
  const char* modules = std::getenv("LOADEDMODULES");
  add("Modules", modules == nullptr ? "" : modules);
  add("Environment", environment_that_matters());
  add("C compiler", programs.cc());
  add("C++ compiler", programs.cxx());
  add("CUDA compiler", programs.nvcc());
  add("MPI", programs.mpi());
  add("Commit", programs.commit());
  add("Load at start", load_average(root));
  return facts;
}

Facts merged(const std::vector<Facts>& sessions) {
  Facts all;
  std::map<std::string, std::set<std::string>> seen;
  for (const Facts& session : sessions) {
    for (const auto& [name, value] : session) {
      if (!seen[name].insert(value).second) continue;
      const auto known = std::ranges::find_if(
          all, [&, wanted = name](const auto& f) { return f.first == wanted; });
      if (known == all.end()) {
        all.emplace_back(name, value);
      } else {
        known->second += " / " + value;
      }
    }
  }
  return all;
}

std::vector<FactDifference> differences(const Facts& base, const Facts& other) {
  std::vector<FactDifference> out;
  const std::map<std::string, std::string> before(base.begin(), base.end());
  const std::map<std::string, std::string> after(other.begin(), other.end());
  for (const auto& [name, value] : base) {
    const auto found = after.find(name);
    const std::string now = found == after.end() ? "" : found->second;
    if (!is_momentary(name) && now != value) out.push_back({name, value, now});
  }
  for (const auto& [name, value] : other) {
    if (!is_momentary(name) && before.count(name) == 0) out.push_back({name, "", value});
  }
  return out;
}

}  // namespace tally
