#include "engine/journal/lease.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <sstream>

#include "engine/base/files.h"
#include "engine/base/host.h"
#include "engine/base/own_files.h"
#include "engine/journal/journal_files.h"

namespace tally {
namespace {

// A holder that only its renewals show counts as dead after this time.
constexpr int silent_seconds = 120;

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

std::string process_start(int pid) {
  std::string start;
  return read_start(pid, &start) == Life::alive ? boot_id() + "/" + start : std::string();
}

// The holder's life, as far as this host's kernel knows it. The kernel knows nothing about a
// process of another host or of another pid namespace. Containers may share a host's name, and
// hosts may share a name, but not a boot. /proc may hide the processes of other users (hidepid), or
// be absent.
Life life_of(const LeaseHolder& holder) {
  const std::string boot = boot_id();
  if (holder.host != host_identity() || boot.empty() || holder.pid_namespace.empty() ||
      holder.process_start.rfind(boot + "/", 0) != 0 ||
      holder.pid_namespace != own_pid_namespace()) {
    return Life::unknown;
  }
  if (kill(holder.pid, 0) != 0 && errno == ESRCH) return Life::dead;
  std::string start;
  const Life life = read_start(holder.pid, &start);
  if (life != Life::alive) return life;
  return boot + "/" + start == holder.process_start ? Life::alive : Life::dead;
}

// Seconds since the file was renewed, by the clock of the file system, because the clocks of hosts
// differ. The time comes from a new file that is written beside it. If that fails, the host's clock
// is used.
double age_of(const std::string& path) {
  // The file is opened, not only checked with stat(). A network file system answers stat() from a
  // cache that may be a minute old, but refreshes it when a file is opened.
  struct stat lease {};
  const int file = open_own(folder_of(path), path, O_RDONLY | O_NONBLOCK);
  if (file < 0 && errno == ENOENT) return HUGE_VAL;
  // Opening may be refused where looking is not.
  const int known = file >= 0 ? fstat(file, &lease) : lstat(path.c_str(), &lease);
  if (file >= 0) close(file);
  if (known != 0) return 0;
  double now = static_cast<double>(time(nullptr));
  const std::string probe = name_beside(path);
  const int fd = open(probe.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
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
  LeaseHolder holder;
  std::string text;
  if (!read_own_file(folder_of(path), path, &text)) {
    if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::nullopt;
    return holder;
  }
  std::istringstream lines(text);
  std::string host, pid;
  if (!std::getline(lines, host) || !std::getline(lines, pid) ||
      !std::getline(lines, holder.process_start) || !std::getline(lines, holder.since)) {
    return LeaseHolder();
  }
  std::getline(lines, holder.pid_namespace);
  holder.host = host;
  holder.pid = static_cast<int>(strtol(pid.c_str(), nullptr, 10));
  return holder;
}

std::optional<LeaseHolder> Lease::live_holder(const std::string& path) {
  auto holder = read(path);
  if (!holder) return std::nullopt;
  const Life life = holder->host.empty() ? Life::unknown : life_of(*holder);
  if (life == Life::dead || (life == Life::unknown && age_of(path) > silent_seconds)) {
    return std::nullopt;
  }
  return holder;
}

std::optional<LeaseHolder> Lease::possible_holder(const std::string& path, double* silent) {
  auto holder = read(path);
  if (!holder || holder->host.empty() || life_of(*holder) == Life::dead) return std::nullopt;
  *silent = age_of(path);
  if (std::isinf(*silent)) return std::nullopt;  // released meanwhile
  return holder;
}

std::string in_use_message(const std::string& what, const std::optional<LeaseHolder>& holder,
                           double silent) {
  std::string message = what + " is in use";
  if (holder && !holder->host.empty()) {
    message += " by tally on host " + holder->host + ", process " + std::to_string(holder->pid) +
               ", since " + holder->since;
  } else {
    message += " by another process";
  }
  if (silent > silent_seconds) {
    message += "; that process has the journal's lock and has not renewed its lease for " +
               std::to_string(static_cast<long>(silent / 60)) + " minutes, so it may be suspended";
  }
  return message + "; wait for it to end, or end it, then continue";
}

namespace {

// Writes `text` to `fresh`, a name beside `path` that only this process uses.
Status write_fresh(const std::string& fresh, const std::string& text, const std::string& path) {
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
  return Status::ok();
}

// Writes `text` to a name that only this process uses and links it to `path`. `made` is false when
// `path` exists. On a file system without hard links, open() with O_EXCL is used instead.
Status make_once(const std::string& path, const std::string& text, bool* made) {
  *made = false;
  const std::string fresh = name_beside(path);
  TRY(write_fresh(fresh, text, path));
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

// A process that was killed while it took a lease over has left its door. Another process may see
// that at the same moment and have made a door of its own, which is put back.
void remove_dead_door(const std::string& door) {
  std::string dead, found;
  const Status read = read_own_file(folder_of(door), door, &dead);
  if (!read && read.reason() == ENOENT) return;
  if (!read && age_of(door) > silent_seconds) unlink(door.c_str());
  if (!read || Lease::live_holder(door)) return;
  const std::string aside = name_beside(door);
  if (rename(door.c_str(), aside.c_str()) != 0) return;
  if (!read_own_file(folder_of(aside), aside, &found) || found != dead) {
    [[maybe_unused]] const int back = link(aside.c_str(), door.c_str());
  }
  unlink(aside.c_str());
}

// Replaces the lease at once: at each moment it is the former one or this one.
Status replace_lease(const std::string& path, const std::string& text) {
  const std::string fresh = name_beside(path);
  TRY(write_fresh(fresh, text, path));
  if (rename(fresh.c_str(), path.c_str()) == 0) return Status::ok();
  const int reason = errno;
  unlink(fresh.c_str());
  // The server's answer may have been lost and the request repeated.
  std::string found;
  if (read_own_file(folder_of(path), path, &found) && found == text) return Status::ok();
  return file_error(path, "cannot write", reason);
}

}  // namespace

Status Lease::take(const std::string& path, const std::string& what) {
  if (auto holder = live_holder(path)) return Status::error(in_use_message(what, holder));
  const std::string text = host_identity() + "\n" + std::to_string(getpid()) + "\n" +
                           process_start(getpid()) + "\n" + time_stamp() + "\n" +
                           own_pid_namespace() + "\n";
  bool made = false;
  TRY(make_once(path, text, &made));
  if (!made) {
    // The lease belongs to a dead holder. Only one process at a time may remove it. Otherwise the
    // second one would remove the new lease of the first.
    const std::string door = path + ".take";
    remove_dead_door(door);
    bool alone = false;
    TRY(make_once(door, text, &alone));
    if (!alone) return Status::error(in_use_message(what, std::nullopt));
    Status status;
    if (auto holder = live_holder(path)) {
      status = Status::error(in_use_message(what, holder));
    } else {
      status = take_over(path, text);
    }
    unlink(door.c_str());
    if (!status) return status;
  }
  path_ = path;
  text_ = text;
  renewed_ = seconds_now();
  return Status::ok();
}

Status Lease::take_over(const std::string& path, const std::string& text) {
  struct stat info {};
  std::string former;
  const bool known = lstat(path.c_str(), &info) == 0 &&
                     static_cast<bool>(read_own_file(folder_of(path), path, &former));
  TRY(replace_lease(path, text));
  former_ = known ? former : "";
  former_renewal_ = info.st_mtim;
  return Status::ok();
}

void Lease::give_back() {
  if (path_.empty() || former_.empty() || owner() != Owner::self) return release();
  const timespec times[2] = {former_renewal_, former_renewal_};
  if (!replace_lease(path_, former_)) return release();
  // Without its old time, the former holder only counts as alive for two minutes more.
  [[maybe_unused]] const int done = utimensat(AT_FDCWD, path_.c_str(), times, AT_SYMLINK_NOFOLLOW);
  path_.clear();
}

double Lease::seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Lease::Owner Lease::owner() const {
  std::string found;
  const Status known = read_own_file(folder_of(path_), path_, &found);
  if (known) return found == text_ ? Owner::self : Owner::other;
  // A file system that is away shows no lease, but shows no journal either.
  const bool gone = known.reason() == ENOENT && access(path_.c_str(), F_OK) != 0 && errno == ENOENT;
  return gone && access(main_file(folder_of(path_)).c_str(), F_OK) == 0 ? Owner::other
                                                                        : Owner::unknown;
}

bool Lease::renew() {
  if (path_.empty()) return true;
  const Owner found = owner();
  if (found == Owner::other) return false;
  if (found == Owner::self &&
      utimensat(AT_FDCWD, path_.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) == 0) {
    renewed_ = seconds_now();
  }
  return seconds_now() - renewed_ < silent_seconds;
}

void Lease::release() {
  if (!path_.empty() && owner() == Owner::self) unlink(path_.c_str());
  path_.clear();
}

}  // namespace tally
