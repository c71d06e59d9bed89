#include "engine/execute/machine_facts.h"

#include <fmt/format.h>
#include <glob.h>
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

#include "engine/base/host.h"
#include "engine/base/text.h"

namespace tally {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return std::string(strip(line));
}

std::vector<std::string> matching(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
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

std::string gpus(const std::string& root) {
  std::vector<std::string> names;
  for (const std::string& path : matching(root + "/proc/driver/nvidia/gpus/*/information")) {
    const auto keys = read_keys(path);
    if (const auto model = keys.find("Model"); model != keys.end()) names.push_back(model->second);
  }
  return counted(names);
}

std::string fabric(const std::string& root) {
  std::vector<std::string> names;
  for (const std::string& port : matching(root + "/sys/class/infiniband/*/ports/*")) {
    const std::string device = port.substr(0, port.find("/ports/"));
    names.push_back(
        fmt::format("{} {}", device.substr(device.rfind('/') + 1), first_line(port + "/rate")));
  }
  return join(names, ", ");
}

std::string environment_that_matters() {
  constexpr std::array<const char*, 10> kPrefixes = {
      "OMP_", "KMP_", "GOMP_", "MKL_", "OPENBLAS_", "NCCL_", "UCX_", "OMPI_", "I_MPI_", "CUDA_"};
  std::set<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (std::any_of(kPrefixes.begin(), kPrefixes.end(),
                    [&](const char* prefix) { return starts_with(text, prefix); }))
      kept.insert(one_line(text));
  }
  return join({kept.begin(), kept.end()}, " ");
}

// The first line that a command prints.
std::string printed(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::array<char, 256> line{};
  const bool any = std::fgets(line.data(), line.size(), pipe) != nullptr;
  while (std::fgetc(pipe) != EOF) {
  }
  pclose(pipe);
  return any ? std::string(strip(line.data())) : std::string();
}

// "1a2b3c4d, changed": the commit of the workflow's folder.
std::string commit(const std::string& home) {
  const std::string git = "git -C " + shell_quote(home.empty() ? "." : home) + " ";
  const std::string hash = printed(git + "rev-parse --short=12 HEAD 2>/dev/null");
  if (hash.empty()) return {};
  const std::string changed = printed(git + "status --porcelain -uno -- . 2>/dev/null");
  return changed.empty() ? hash : hash + ", changed";
}

}  // namespace

std::string load_average(const std::string& root) {
  const std::string line = first_line(root + "/proc/loadavg");
  const std::vector<std::string> fields = split_strip(line, " ");
  return fields.size() < 3 ? "" : fields[0] + " " + fields[1] + " " + fields[2];
}

Facts machine_facts(const std::string& home, const std::string& root) {
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
  add("CPU governor", first_line(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  add("CPU boost", first_line(root + "/sys/devices/system/cpu/cpufreq/boost"));
  const auto memory = read_keys(root + "/proc/meminfo");
  if (const auto total = memory.find("MemTotal"); total != memory.end()) {
    constexpr double kPerGiB = 1024.0 * 1024.0;
    add("Memory", fmt::format("{:.1f} GiB", std::atof(total->second.c_str()) / kPerGiB));
  }
  add("GPUs", gpus(root));
  add("GPU driver", first_line(root + "/proc/driver/nvidia/version"));
  add("Fabric", fabric(root));
  const char* modules = std::getenv("LOADEDMODULES");
  add("Modules", modules == nullptr ? "" : modules);
  add("Environment", environment_that_matters());
  add("Commit", commit(home));
  add("Load at start", load_average(root));
  return facts;
}

Facts merged(const std::vector<Facts>& sessions) {
  Facts all;
  std::map<std::string, std::set<std::string>> seen;
  for (const Facts& session : sessions) {
    for (const auto& [name, value] : session) {
      if (!seen[name].insert(value).second) continue;
      const auto known = std::find_if(
          all.begin(), all.end(), [&, wanted = name](const auto& f) { return f.first == wanted; });
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

bool is_momentary(const std::string& fact) {
  return starts_with(fact, "Load ");
}

}  // namespace tally
