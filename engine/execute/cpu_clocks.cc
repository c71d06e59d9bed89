#include "engine/execute/cpu_clocks.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "engine/base/system_files.h"

namespace tally {
namespace {

constexpr const char* kCpus = "/sys/devices/system/cpu/cpu";

}  // namespace

CpuClocks::CpuClocks(std::string root) : root_(std::move(root)) {
  for (const char* name : {"core_throttle_count", "package_throttle_count"}) {
    for (std::string& path : paths_matching(root_ + kCpus + "[0-9]*/thermal_throttle/" + name))
      counters_.push_back(std::move(path));
  }
  for (const std::string& folder : paths_matching(root_ + kCpus + "[0-9]*/cpufreq")) {
    const size_t begin = root_.size() + std::string(kCpus).size();
    const int cpu = std::atoi(folder.c_str() + begin);
    double value = 0;
    // Intel's driver says it in kHz, the driver of AMD and ARM in MHz.
    if (read_number(folder + "/base_frequency", &value) && value > 0) {
      base_[cpu] = value / 1e6;
    } else if (read_number(root_ + kCpus + std::to_string(cpu) + "/acpi_cppc/nominal_freq",
                           &value) &&
               value > 0) {
      base_[cpu] = value / 1e3;
    }
  }
}

// "cpu3 user nice system idle iowait irq softirq steal" of /proc/stat.
std::map<int, CpuClocks::Times> CpuClocks::times() const {
  std::map<int, Times> all;
  std::ifstream stat(root_ + "/proc/stat");
  for (std::string line; std::getline(stat, line) && line.rfind("cpu", 0) == 0;) {
    std::istringstream fields(line.substr(3));
    if (line[3] == ' ') continue;  // the sum
    int cpu = 0;
    std::array<double, 8> ticks{};
    fields >> cpu;
    for (double& one : ticks) fields >> one;
    if (!fields) continue;
    constexpr size_t kIdle = 3;
    constexpr size_t kWaiting = 4;
    Times& times = all[cpu];
    for (const double one : ticks) times.all += one;
    times.busy = times.all - ticks[kIdle] - ticks[kWaiting];
  }
  return all;
}

void CpuClocks::look() {
  if (!has_clocks()) return;
  constexpr double kBusy = 0.9;  // an idle CPU's clock is low on purpose
  constexpr int kMost = 8;       // the kernel may interrupt a CPU to read its clock
  std::map<int, Times> now = times();
  int looks = 0;
  for (const auto& [cpu, times] : now) {
    const auto before = before_.find(cpu);
    const auto base = base_.find(cpu);
    if (before == before_.end() || base == base_.end() || looks == kMost) continue;
    const double all = times.all - before->second.all;
    if (all <= 0 || times.busy - before->second.busy < kBusy * all) continue;
    double khz = 0;
    if (!read_number(root_ + kCpus + std::to_string(cpu) + "/cpufreq/scaling_cur_freq", &khz))
      continue;
    ++looks;
    seen_.looks += 1;
    seen_.ghz += khz / 1e6;
    seen_.base_ghz += base->second;
  }
  before_ = std::move(now);
}

CpuClocks::Sample CpuClocks::sample() const {
  Sample sample = seen_;
  for (const std::string& path : counters_) {
    double count = 0;
    if (read_number(path, &count)) sample.events += static_cast<long long>(count);
  }
  return sample;
}

std::string cpu_throttling(const CpuClocks::Sample& from, const CpuClocks::Sample& to) {
  std::string text;
  const long long events = to.events - from.events;
  if (events > 0)
    text = fmt::format("CPU: {} thermal throttling event{}", events, events == 1 ? "" : "s");
  constexpr double kMost = 0.95;  // readings of a clock vary
  const double looks = to.looks - from.looks;
  const double ghz = to.ghz - from.ghz;
  const double base = to.base_ghz - from.base_ghz;
  if (looks > 0 && ghz < kMost * base)
    text += fmt::format("{}CPU: {:.2f} GHz, below the base clock of {:.2f} GHz",
                        text.empty() ? "" : "; ", ghz / looks, base / looks);
  return text;
}

}  // namespace tally
