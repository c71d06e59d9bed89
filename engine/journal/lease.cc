#include "engine/journal/lease.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

namespace tally {
namespace {

// A holder on another host that has not renewed for this long is taken for dead.
constexpr int other_host_seconds = 120;

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

// Boot id and start time in clock ticks (field 22 of /proc/PID/stat, after the command's ')').
std::string process_start(int pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return {};
  const size_t end = line.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream fields(line.substr(end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) {
    fields >> field;
    if (i == 3 && (field == "Z" || field == "X")) return {};  // dead, not yet reaped
  }
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot + "/" + field;
}

std::string now_text() {
  const time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> text{};
  strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

// Seconds since the file was renewed, by the file system's own clock: a fresh file is written
// beside it to ask for the time, since hosts disagree. Where that cannot be done, the host's clock
// must do.
double age_of(const std::string& path) {
  struct stat lease {};
  if (stat(path.c_str(), &lease) != 0) return 1e9;
  double now = static_cast<double>(time(nullptr));
  const std::string probe = path + "." + host_name() + "." + std::to_string(getpid());
  const int fd = open(probe.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (fd >= 0) {
    struct stat fresh {};
    if (fstat(fd, &fresh) == 0) now = static_cast<double>(fresh.st_mtime);
    close(fd);
    unlink(probe.c_str());
  }
  return now - static_cast<double>(lease.st_mtime);
}

}  // namespace

std::optional<LeaseHolder> Lease::read(const std::string& path) {
  std::ifstream file(path);
  LeaseHolder holder;
  std::string pid;
  if (!std::getline(file, holder.host) || !std::getline(file, pid) ||
      !std::getline(file, holder.process_start) || !std::getline(file, holder.since)) {
    return std::nullopt;
  }
  holder.pid = static_cast<int>(strtol(pid.c_str(), nullptr, 10));
  return holder;
}

std::optional<LeaseHolder> Lease::live_holder(const std::string& path) {
  auto holder = read(path);
  if (!holder) return std::nullopt;
  if (holder->host == host_name()) {
    const std::string start = process_start(holder->pid);
    if (start.empty() || start != holder->process_start) return std::nullopt;
    return holder;
  }
  if (age_of(path) > other_host_seconds) return std::nullopt;
  return holder;
}

std::string in_use_message(const std::string& what, const std::optional<LeaseHolder>& holder) {
  std::string message = what + " is in use";
  if (holder) {
    message += " by tally on host " + holder->host + ", process " + std::to_string(holder->pid) +
               ", since " + holder->since;
  } else {
    message += " by another process";
  }
  return message + "; wait for it to end, or end it, then continue";
}

Status Lease::take(const std::string& path, const std::string& what) {
  if (auto holder = live_holder(path)) return Status::error(in_use_message(what, holder));
  // Written aside and renamed: a reader never sees half of it.
  const std::string fresh = path + ".new." + std::to_string(getpid());
  {
    std::ofstream file(fresh);
    file << host_name() << '\n'
         << getpid() << '\n'
         << process_start(getpid()) << '\n'
         << now_text() << '\n';
    file.flush();
    if (!file) {
      unlink(fresh.c_str());
      return Status::error(path + ": cannot write: " + strerror(errno));
    }
  }
  if (rename(fresh.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    unlink(fresh.c_str());
    return Status::error(path + ": cannot write: " + strerror(reason));
  }
  path_ = path;
  return Status::ok();
}

void Lease::renew() {
  if (!path_.empty()) utimensat(AT_FDCWD, path_.c_str(), nullptr, 0);
}

void Lease::release() {
  if (!path_.empty()) unlink(path_.c_str());
  path_.clear();
}

}  // namespace tally
