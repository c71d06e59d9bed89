#include "engine/execute/machine_load.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/workspace/left_behind.h"

namespace tally {
namespace {

struct Process {
  int parent = 0;
  double ticks = 0;  // its own, and those of its children that have ended
};

// Reads /proc/PID/stat. The name in parentheses may hold anything, so that fields are counted from
// the last one.
bool read_process(const std::string& path, Process* out) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line)) return false;
  const size_t end = line.rfind(')');
  if (end == std::string::npos) return false;
  std::istringstream fields(line.substr(end + 1));
  std::string state;
  fields >> state >> out->parent;
  constexpr int kBeforeTimes = 9;  // pgrp ... cmajflt
  std::string skipped;
  for (int i = 0; i < kBeforeTimes; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  double children_user = 0;
  double children_system = 0;
  fields >> user >> system >> children_user >> children_system;
  out->ticks = user + system + children_user + children_system;
  return static_cast<bool>(fields);
}

// The time of a process and of all its descendants. The time of one that ended is its parent's.
double ticks_of_tree(const std::unordered_map<int, Process>& all, int root) {
  std::unordered_map<int, std::vector<int>> children;
  for (const auto& [pid, process] : all) children[process.parent].push_back(pid);
  double ticks = 0;
  std::vector<int> queue = {root};
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto process = all.find(queue[i]);
    if (process != all.end()) ticks += process->second.ticks;
    const auto below = children.find(queue[i]);
    if (below != children.end())
      queue.insert(queue.end(), below->second.begin(), below->second.end());
  }
  return ticks;
}

}  // namespace

MachineLoad::MachineLoad(std::string proc, int pid)
    : proc_(std::move(proc)),
      pid_(pid != 0 ? pid : getpid()),
      tick_(1.0 / static_cast<double>(sysconf(_SC_CLK_TCK))) {}

std::optional<LoadSample> MachineLoad::sample() const {
  LoadSample sample;
  sample.time = std::chrono::steady_clock::now();
  std::ifstream stat(proc_ + "/stat");
  std::string word;
  // cpu user nice system idle iowait irq softirq steal
  std::array<double, 8> times{};
  if (!(stat >> word) || word != "cpu") return {};
  for (double& time : times) {
    if (!(stat >> time)) return {};
  }
  constexpr size_t kIdle = 3;
  constexpr size_t kWaiting = 4;
  for (size_t i = 0; i < times.size(); ++i) {
    if (i != kIdle && i != kWaiting) sample.busy += times[i] * tick_;
  }
  std::unordered_map<int, Process> all;
  const Status listed = each_entry(proc_, [&](const dirent& entry) {
    const int pid = std::atoi(entry.d_name);
    Process process;
    if (pid > 0 && read_process(proc_ + "/" + entry.d_name + "/stat", &process))
      all.emplace(pid, process);
  });
  if (!listed) return {};
  sample.own = ticks_of_tree(all, pid_) * tick_;
  return sample;
}

std::optional<double> cores_of_others(const LoadSample& from, const LoadSample& to) {
  constexpr double kShortest = 0.2;  // seconds: twenty ticks
  const double seconds = std::chrono::duration<double>(to.time - from.time).count();
  if (seconds < kShortest) return {};
  return ((to.busy - from.busy) - (to.own - from.own)) / seconds;
}

bool disturbs(const LoadSample& from, const LoadSample& to) {
  constexpr double kHalfACore = 0.5;
  constexpr double kAccounting = 0.03;
  const std::optional<double> others = cores_of_others(from, to);
  const double seconds = std::chrono::duration<double>(to.time - from.time).count();
  return others && *others > kHalfACore && *others > kAccounting * (to.own - from.own) / seconds;
}

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

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string command_of(int pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(in, name);
  return name;
}

// The server of MPS stands for its clients, which are listed, too.
bool is_service(const std::string& command) {
  return starts_with(command, "nvidia-cuda-mps");
}

}  // namespace

GpuWatch::GpuWatch(const GpuDevices& gpus, FindOwner find_owner)
    : gpus_(gpus), find_owner_(std::move(find_owner)) {
  for (size_t gpu = 0; gpu < gpus.count(); ++gpu) settings_.push_back(gpus.settings(gpu));
}

void GpuWatch::started(int workpackage) {
  watched_[workpackage].gpus.resize(gpus_.count());
}

void GpuWatch::look() {
  const double time = now();
  for (size_t gpu = 0; gpu < gpus_.count(); ++gpu) {
    const GpuWork work = gpus_.work(gpu);
    for (auto& [id, watched] : watched_) {
      Seen& seen = watched.gpus[gpu];
      seen.throttle |= slowing_bits(work.throttle, settings_[gpu]);
      add_work(work, time - watched.last, &seen);
    }
    for (const int pid : gpus_.processes(gpu)) note_process(gpu, pid);
  }
  for (auto& [id, watched] : watched_) watched.last = time;
}

// A GPU that waits has low clocks, and at its power limit the clocks of full load may lie below the
// base clock. Both are how it normally works.
void GpuWatch::add_work(const GpuWork& work, double seconds, Seen* seen) {
  const std::optional<GpuWork> before = std::exchange(seen->last, work);
  if (!before || !is_busy(*before) || !is_busy(work)) return;
  seen->busy += seconds;
  if (!before->below_base || !work.below_base) return;
  if (power_capped(before->throttle) || power_capped(work.throttle)) return;
  const double capped = before->capped && work.capped ? *work.capped - *before->capped : 0;
  seen->below += std::max(0.0, *work.below_base - *before->below_base - capped);
}

void GpuWatch::note_process(size_t gpu, int pid) {
  const Owner owner = find_owner_(pid);
  if (owner.kind == Owner::Kind::unknown) return;
  const bool other = owner.kind == Owner::Kind::other;
  const std::string command = other ? command_of(pid) : std::string();
  if (is_service(command)) return;
  for (auto& [id, watched] : watched_) {
    Seen& seen = watched.gpus[gpu];
    if (other) seen.others.insert(fmt::format("process {} ({})", pid, command));
    seen.used = seen.used || owner.kind == Owner::Kind::run || owner.workpackage == id;
  }
}

void GpuWatch::ended(int workpackage, Disturbance* disturbance) {
  const auto found = watched_.find(workpackage);
  if (found == watched_.end()) return;
  const Watched& watched = found->second;
  std::vector<std::string> users;
  std::vector<std::string> slow;
  for (size_t gpu = 0; gpu < watched.gpus.size(); ++gpu) {
    const Seen& seen = watched.gpus[gpu];
    if (!seen.used) continue;
    if (!seen.others.empty())
      users.push_back(
          fmt::format("GPU {}: {}", gpu, join({seen.others.begin(), seen.others.end()}, ", ")));
    if (const std::string why = throttling(seen); !why.empty())
      slow.push_back(fmt::format("GPU {}: {}", gpu, why));
  }
  disturbance->gpu_users = join(users, "; ");
  disturbance->throttling = join(slow, "; ");
  watched_.erase(found);
}

std::string GpuWatch::throttling(const Seen& seen) {
  constexpr double kShare = 0.05;  // of the busy time
  std::string why = seen.throttle == 0 ? "" : throttle_words(seen.throttle);
  if (seen.below > kShare * seen.busy)
    why += fmt::format("{}below its base clock for {:.0f} % of the time in which it was busy",
                       why.empty() ? "" : ", ", 100 * std::min(1.0, seen.below / seen.busy));
  return why;
}

GpuWatch::Owner owner_of(int pid, const std::string& run) {
  using Kind = GpuWatch::Owner::Kind;
  const std::string folder = "/proc/" + std::to_string(pid);
  if (access((folder + "/stat").c_str(), R_OK) != 0) return {};
  if (const std::optional<int> id = workpackage_of(pid, run)) return {Kind::workpackage, *id};
  const std::optional<bool> ours = is_descendant(pid, getpid());
  if (!ours) return {};
  return {*ours ? Kind::run : Kind::other, -1};
}

}  // namespace tally
