#include "engine/execute/gpu_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>

#include "engine/base/text.h"
#include "engine/execute/left_behind.h"

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
  for (auto& [id, watched] : watched_) {
    if (watched.first == 0) watched.first = time;
    watched.last = time;
  }
  for (size_t gpu = 0; gpu < gpus_.count(); ++gpu) {
    const uint64_t throttle = slowing_bits(gpus_.read(gpu).throttle, settings_[gpu]);
    const std::optional<double> below = gpus_.seconds_below_base(gpu);
    for (auto& [id, watched] : watched_) {
      Seen& seen = watched.gpus[gpu];
      seen.throttle |= throttle;
      if (!seen.first_below) seen.first_below = below;
      seen.last_below = below;
    }
    for (const int pid : gpus_.processes(gpu)) note_process(gpu, pid);
  }
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
    if (const std::string why = throttling(seen, watched.last - watched.first); !why.empty())
      slow.push_back(fmt::format("GPU {}: {}", gpu, why));
  }
  disturbance->gpu_users = join(users, "; ");
  disturbance->throttling = join(slow, "; ");
  watched_.erase(found);
}

std::string GpuWatch::throttling(const Seen& seen, double seconds) {
  constexpr double kShare = 0.05;  // of the time
  std::string why = seen.throttle == 0 ? "" : throttle_words(seen.throttle);
  const double below =
      seen.first_below && seen.last_below ? *seen.last_below - *seen.first_below : 0;
  if (seconds > 0 && below > kShare * seconds)
    why += fmt::format("{}below its base clock for {:.0f} % of the time", why.empty() ? "" : ", ",
                       100 * std::min(1.0, below / seconds));
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
