#include "engine/execute/gpu_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <utility>

#include "engine/base/text.h"
#include "engine/workspace/left_behind.h"

namespace tally {
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
