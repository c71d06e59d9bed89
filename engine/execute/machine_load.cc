#include "engine/execute/machine_load.h"

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "engine/base/presence.h"

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

}  // namespace tally
