#include "engine/journal/lease.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

#include "engine/base/files.h"
#include "engine/base/host.h"

namespace tally {
namespace {

// A holder on another host that has not renewed for this long counts as dead.
constexpr int other_host_seconds = 120;

// Returns the boot id and the start time in clock ticks (field 22 of /proc/PID/stat, after the
// command's ')').
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

bool same_boot(const std::string& start) {
  const std::string own = process_start(getpid());
  return start.substr(0, start.find('/')) == own.substr(0, own.find('/'));
}

// Seconds since the file was renewed, by the clock of the file system, because the clocks of hosts
// differ. The time comes from a new file that is written beside it. If that fails, the host's clock
// is used.
double age_of(const std::string& path) {
  // The file is opened, not only checked with stat(). A network file system answers stat() from a
  // cache that may be a minute old, but refreshes it when a file is opened.
  struct stat lease {};
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 1e9;
  const int known = fstat(file, &lease);
  close(file);
  if (known != 0) return 1e9;
  double now = static_cast<double>(time(nullptr));
  const std::string probe = name_beside(path);
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
  // Two machines may have the same name, but not the same boot id. In that case only the age
  // counts, as for any other host.
  if (holder->host == host_identity() && same_boot(holder->process_start)) {
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

namespace {

// Writes `text` to a name that only this process uses and links it to `path`. `made` is false when
// `path` exists. On a file system without hard links, open() with O_EXCL is used instead.
Status make_once(const std::string& path, const std::string& text, bool* made) {
  *made = false;
  const std::string fresh = name_beside(path);
  const int fd = open(fresh.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0) return Status::error(path + ": cannot write: " + strerror(errno));
  bool whole = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  int reason = errno;
  if (close(fd) != 0 && whole) {
    whole = false;
    reason = errno;
  }
  if (!whole) {
    unlink(fresh.c_str());
    return Status::error(path + ": cannot write: " + strerror(reason));
  }
  if (link(fresh.c_str(), path.c_str()) == 0) {
    *made = true;
  } else if (errno == EEXIST) {
    // The server's answer may have been lost and the request repeated. Two names for one file show
    // that the link was made.
    struct stat info {};
    *made = stat(fresh.c_str(), &info) == 0 && info.st_nlink == 2;
  } else {
    const int direct = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    *made =
        direct >= 0 && write(direct, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (direct >= 0) close(direct);
  }
  unlink(fresh.c_str());
  return Status::ok();
}

}  // namespace

Status Lease::take(const std::string& path, const std::string& what) {
  if (auto holder = live_holder(path)) return Status::error(in_use_message(what, holder));
  const std::string text = host_identity() + "\n" + std::to_string(getpid()) + "\n" +
                           process_start(getpid()) + "\n" + time_stamp() + "\n";
  bool made = false;
  if (Status s = make_once(path, text, &made); !s) return s;
  if (!made) {
    // The lease belongs to a dead holder. Only one process at a time may remove it. Otherwise the
    // second one would remove the new lease of the first.
    const std::string door = path + ".take";
    if (age_of(door) > other_host_seconds) unlink(door.c_str());  // its maker died here
    bool alone = false;
    if (Status s = make_once(door, text, &alone); !s) return s;
    if (!alone) return Status::error(in_use_message(what, std::nullopt));
    Status status;
    if (auto holder = live_holder(path)) {
      status = Status::error(in_use_message(what, holder));
    } else {
      unlink(path.c_str());
      status = make_once(path, text, &made);
    }
    unlink(door.c_str());
    if (!status) return status;
    if (!made) return Status::error(in_use_message(what, live_holder(path)));
  }
  path_ = path;
  text_ = text;
  return Status::ok();
}

bool Lease::ours() const {
  std::ifstream file(path_);
  std::stringstream found;
  found << file.rdbuf();
  return file && found.str() == text_;
}

bool Lease::renew() {
  if (path_.empty()) return true;
  if (!ours()) return false;
  utimensat(AT_FDCWD, path_.c_str(), nullptr, 0);
  return true;
}

void Lease::release() {
  if (!path_.empty() && ours()) unlink(path_.c_str());
  path_.clear();
}

}  // namespace tally
