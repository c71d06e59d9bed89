#include "engine/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "engine/base/host.h"

namespace tally {
namespace {

Status write_all(int fd, const std::string& bytes, const std::string& path) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t put = write(fd, bytes.data() + at, bytes.size() - at);
    if (put < 0) {
      if (errno == EINTR) continue;
      return file_error(path, "cannot write", errno);
    }
    at += static_cast<size_t>(put);
  }
  return Status::ok();
}

}  // namespace

Status file_error(const std::string& path, const char* what, int reason) {
  std::string hint;
  if (reason == EACCES || reason == EROFS || reason == EPERM) {
    hint = "; choose a folder that you may write to with --outpath";
  } else if (reason == ENOSPC || reason == EDQUOT) {
    hint = "; free some space and continue the run";
  }
  return Status::error(path + ": " + what + ": " + strerror(reason) + hint);
}

std::string time_stamp() {
  const time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> text{};
  strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

Status make_directories(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return Status::ok();
  const int reason = errno;
  struct stat there {};
  if (stat(path.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) return Status::ok();
    return Status::error(path + ": exists but is not a directory");
  }
  const size_t slash = path.find_last_of('/');
  if (reason == ENOENT && slash != std::string::npos && slash > 0) {
    if (Status s = make_directories(path.substr(0, slash)); !s) return s;
    if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return Status::ok();
    return file_error(path, "cannot make the folder", errno);
  }
  return file_error(path, "cannot make the folder", reason);
}

Status write_file(const std::string& path, const std::string& bytes, int mode) {
  // The temporary name is unique to this process. Others, possibly on other hosts, may write the
  // same file at the same moment.
  const std::string aside = name_beside(path);
  const int fd = open(aside.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return file_error(path, "cannot write", errno);
  Status status = write_all(fd, bytes, path);
  if (status && fchmod(fd, static_cast<mode_t>(mode)) != 0) {
    status = file_error(path, "cannot set its permissions", errno);
  }
  if (close(fd) != 0 && status) status = file_error(path, "cannot write", errno);
  if (status && rename(aside.c_str(), path.c_str()) != 0) {
    status = file_error(path, "cannot write", errno);
  }
  if (!status) unlink(aside.c_str());
  return status;
}

Status append_file(const std::string& path, const std::string& bytes) {
  const int fd = open(path.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0) return file_error(path, "cannot write", errno);
  Status status = write_all(fd, bytes, path);
  if (close(fd) != 0 && status) status = file_error(path, "cannot write", errno);
  return status;
}

Status read_file(const std::string& path,
                 const std::function<void(const char* bytes, size_t count)>& take) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file_error(path, "cannot read", errno);
  std::array<char, 65536> buffer{};
  Status status;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = file_error(path, "cannot read", errno);
    if (got <= 0) break;
    take(buffer.data(), static_cast<size_t>(got));
  }
  close(fd);
  return status;
}

Status read_file(const std::string& path, std::string* bytes) {
  bytes->clear();
  return read_file(path, [bytes](const char* piece, size_t count) { bytes->append(piece, count); });
}

std::string absolute_path(const std::string& path, const std::string& base) {
  namespace fs = std::filesystem;
  const bool plain = path.size() > 1 && path.front() == '/' && path.back() != '/' &&
                     path.find("//") == std::string::npos && path.find("/.") == std::string::npos;
  if (plain) return path;
  std::error_code ignored;
  fs::path full(path);
  if (!full.is_absolute()) {
    fs::path start(base);
    if (!start.is_absolute()) start = fs::current_path(ignored) / start;
    full = start / full;
  }
  std::string text = full.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::string relative_path(const std::string& to, const std::string& from) {
  const std::string path = std::filesystem::path(to).lexically_relative(from).string();
  return path.empty() ? to : path;
}

}  // namespace tally
