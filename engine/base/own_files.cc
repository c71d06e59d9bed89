#include "engine/base/own_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/host.h"

namespace tally {
namespace {

constexpr int folder_flags = O_PATH | O_DIRECTORY | O_CLOEXEC;

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { reset(-1); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd) {
    const int reason = errno;
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
    errno = reason;
  }

 private:
  int fd_;
};

Status own_error(const std::string& path, const char* what, int reason) {
  if (reason == ELOOP || reason == ENOTDIR) {
    return Status::error(path + ": " + what +
                             ": it is a link, or there is one on its way, and the " +
                             "run did not make it; remove the link",
                         reason, path);
  }
  return file_error(path, what, reason);
}

// Opens a folder below `root`, name by name. For kernels and containers without openat2().
int walk(int root, const std::string& below) {
  Descriptor folder(fcntl(root, F_DUPFD_CLOEXEC, 0));
  for (size_t at = 0; at < below.size() && folder.get() >= 0;) {
    const size_t end = std::min(below.find('/', at), below.size());
    const std::string name = below.substr(at, end - at);
    at = end + 1;
    folder.reset(openat(folder.get(), name.c_str(), folder_flags | O_NOFOLLOW));
  }
  return folder.release();
}

int open_folder(int root, const std::string& below) {
  open_how how{};
  how.flags = folder_flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const long fd = syscall(__NR_openat2, root, below.c_str(), &how, sizeof how);
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  return walk(root, below);
}

// The folder in which `path` lies, and its name there.
struct Location {
  Descriptor folder;
  std::string name;
  bool own = false;
  int at() const { return own ? folder.get() : AT_FDCWD; }
};

// Returns 0 or an errno value.
int locate(const std::string& root, const std::string& path, Location* location) {
  location->own = path.size() > root.size() + 1 && path.compare(0, root.size(), root) == 0 &&
                  path[root.size()] == '/';
  location->name = path;
  if (!location->own) return 0;
  const size_t slash = path.rfind('/');
  location->name = path.substr(slash + 1);
  Descriptor top(open(root.c_str(), folder_flags));
  if (top.get() < 0) return errno;
  if (slash == root.size()) {
    location->folder.reset(top.release());
    return 0;
  }
  const size_t start = root.size() + 1;
  location->folder.reset(open_folder(top.get(), path.substr(start, slash - start)));
  return location->folder.get() >= 0 ? 0 : errno;
}

int open_at(const Location& location, int flags, mode_t mode) {
  return openat(location.at(), location.name.c_str(),
                flags | O_CLOEXEC | (location.own ? O_NOFOLLOW : 0), mode);
}

}  // namespace

int open_own(const std::string& root, const std::string& path, int flags, mode_t mode) {
  Location location;
  if (const int reason = locate(root, path, &location); reason != 0) {
    errno = reason;
    return -1;
  }
  return open_at(location, flags, mode);
}

Status make_own_directories(const std::string& root, const std::string& path) {
  Location location;
  int reason = locate(root, path, &location);
  if (!location.own) return make_directories(path);
  if (reason == ENOENT) {
    const size_t slash = path.rfind('/');
    if (slash <= root.size()) return file_error(path, "cannot make the folder", reason);
    TRY(make_own_directories(root, path.substr(0, slash)));
    reason = locate(root, path, &location);
  }
  if (reason != 0) return own_error(path, "cannot make the folder", reason);
  if (mkdirat(location.at(), location.name.c_str(), 0777) == 0) return Status::ok();
  reason = errno;
  struct stat info {};
  if (reason != EEXIST) return file_error(path, "cannot make the folder", reason);
  if (fstatat(location.at(), location.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return file_error(path, "cannot look at it", errno);
  }
  if (S_ISDIR(info.st_mode)) return Status::ok();
  if (S_ISLNK(info.st_mode)) return own_error(path, "cannot make the folder", ELOOP);
  return Status::error(path + ": exists but is not a directory");
}

Status write_own_file(const std::string& root, const std::string& path, const std::string& bytes,
                      int mode) {
  Location location;
  if (const int reason = locate(root, path, &location); reason != 0) {
    return own_error(path, "cannot write", reason);
  }
  if (!location.own) return write_file(path, bytes, mode);
  const std::string aside = name_beside(location.name);
  const int flags = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW;
  int fd = openat(location.at(), aside.c_str(), flags, static_cast<mode_t>(mode));
  if (fd < 0 && errno == EEXIST) {  // of a dead process with the same id, or planted
    unlinkat(location.at(), aside.c_str(), 0);
    fd = openat(location.at(), aside.c_str(), flags, static_cast<mode_t>(mode));
  }
  if (fd < 0) return file_error(path, "cannot write", errno);
  Status status = write_and_close(fd, bytes, path);
  if (status && renameat(location.at(), aside.c_str(), location.at(), location.name.c_str()) != 0) {
    status = file_error(path, "cannot write", errno);
  }
  if (!status) unlinkat(location.at(), aside.c_str(), 0);
  return status;
}

Status append_own_file(const std::string& root, const std::string& path, const std::string& bytes,
                       int mode) {
  const int fd = open_own(root, path, O_CREAT | O_APPEND | O_WRONLY, static_cast<mode_t>(mode));
  if (fd < 0) return own_error(path, "cannot write", errno);
  return write_and_close(fd, bytes, path);
}

Status read_own_file(const std::string& root, const std::string& path, std::string* bytes) {
  bytes->clear();
  // A pipe that somebody planted would never end.
  const int fd = open_own(root, path, O_RDONLY | O_NONBLOCK);
  if (fd < 0) return own_error(path, "cannot read", errno);
  struct stat info {};
  Status status;
  if (fstat(fd, &info) != 0) status = file_error(path, "cannot read", errno);
  if (status && !S_ISREG(info.st_mode)) status = Status::error(path + ": is not a file");
  std::array<char, 65536> buffer{};
  while (status) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = file_error(path, "cannot read", errno);
    if (got <= 0) break;
    bytes->append(buffer.data(), static_cast<size_t>(got));
  }
  close(fd);
  return status;
}

Status rename_own(const std::string& root, const std::string& from, const std::string& to) {
  Location old, fresh;
  int reason = locate(root, from, &old);
  if (reason == 0) reason = locate(root, to, &fresh);
  if (reason != 0) return own_error(from, "cannot be moved", reason);
  if (renameat(old.at(), old.name.c_str(), fresh.at(), fresh.name.c_str()) == 0)
    return Status::ok();
  return file_error(from, "cannot be moved", errno);
}

Status remove_own(const std::string& root, const std::string& path) {
  Location location;
  const int reason = locate(root, path, &location);
  if (reason == ENOENT) return Status::ok();
  if (reason != 0) return own_error(path, "cannot remove", reason);
  if (unlinkat(location.at(), location.name.c_str(), 0) == 0 || errno == ENOENT)
    return Status::ok();
  if (errno == EISDIR && unlinkat(location.at(), location.name.c_str(), AT_REMOVEDIR) == 0) {
    return Status::ok();
  }
  return file_error(path, "cannot remove", errno);
}

}  // namespace tally
