#include "src/data/text/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace tally::train {
namespace {
constexpr size_t kBuffer = size_t{1} << 18;
}

OutputFile::OutputFile(std::string path, bool exclusive) : path_(std::move(path)) {
  fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("cannot be written");
  if (exclusive && flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(fd_);
    throw std::runtime_error(fmt::format(
        "'{}' is being written by another process: wait for it, or choose another output", path_));
  }
  if (ftruncate(fd_, 0) != 0) {
    const int error = errno;
    close(fd_);
    errno = error;
    fail("cannot be emptied");
  }
  buffer_.reserve(kBuffer);
}

OutputFile::~OutputFile() {
  if (!keep_) unlink(path_.c_str());
  close(fd_);
}

void OutputFile::fail(const char* what) const {
  throw std::runtime_error(fmt::format("'{}' {}: {}", path_, what, std::strerror(errno)));
}

void OutputFile::append(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  size_ += static_cast<int64_t>(bytes);
  if (buffer_.size() + bytes > kBuffer) flush();
  if (bytes < kBuffer) {
    buffer_.insert(buffer_.end(), from, from + bytes);
    return;
  }
  while (bytes > 0) {
    const ssize_t written = write(fd_, from, std::min<size_t>(bytes, size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written");
    from += written;
    bytes -= static_cast<size_t>(written);
  }
}

void OutputFile::flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t written = write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written");
    done += static_cast<size_t>(written);
  }
  buffer_.clear();
}

void OutputFile::rewind_for_reading() {
  flush();
  if (lseek(fd_, 0, SEEK_SET) != 0) fail("cannot be read back");
}

size_t OutputFile::read(void* data, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::read(fd_, static_cast<char*>(data) + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot be read back");
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

void OutputFile::sync_and_keep() {
  flush();
  if (fsync(fd_) != 0) fail("cannot be flushed to disk");
  keep_ = true;
}

namespace {

namespace fs = std::filesystem;

// The folder of links to what a process has open, as /dev/stdout is; empty: the path is in none.
fs::path folder_of_open_files(const fs::path& path) {
  std::error_code none;
  const fs::path folder = fs::canonical(fs::absolute(path, none).parent_path(), none);
  return folder.string().rfind("/proc/", 0) == 0 ? folder : fs::path();
}

// The descriptor of this process that a path names; -1: it names none.
int descriptor_of(const fs::path& path) {
  std::error_code none;
  const fs::path folder = folder_of_open_files(path);
  if (folder.empty() || folder != fs::canonical("/proc/self/fd", none)) return -1;
  int fd = -1;
  const std::string name = path.filename().string();
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), fd);
  return error == std::errc() && end == name.data() + name.size() ? fd : -1;
}

}  // namespace

Destination destination_of(const std::string& path) {
  constexpr int kMostLinks = 40;  // the kernel's limit
  fs::path at = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks && folder_of_open_files(at).empty(); ++i) {
    const fs::path next = fs::read_symlink(at, error);
    if (error) break;
    at = at.parent_path() / next;
  }
  const bool special = fs::exists(at, error) && !fs::is_regular_file(at, error);
  return {at.string(), !special && folder_of_open_files(at).empty()};
}

void write_into(const std::string& path, const std::string& text) {
  const auto need = [&](bool good) {
    if (!good)
      throw std::system_error(errno, std::generic_category(),
                              fmt::format("'{}' cannot be written", path));
  };
  // A file that this process has open is written behind its own output, which is not written over.
  const int own = descriptor_of(path);
  std::fflush(nullptr);
  // A FIFO that nobody reads would never open otherwise.
  const int fd = own >= 0 ? own : open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
  need(fd >= 0);
  if (own < 0) fcntl(fd, F_SETFL, O_WRONLY | O_APPEND);
  struct Close {
    int fd;
    ~Close() {
      if (fd >= 0) close(fd);
    }
  } const closes{own >= 0 ? -1 : fd};
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(fd, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      poll(&wait, 1, -1);
      continue;
    }
    need(written >= 0);
    done += static_cast<size_t>(written);
  }
}

void rename_durably(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    throw std::runtime_error(
        fmt::format("'{}' cannot be renamed to '{}': {}", from, to, std::strerror(errno)));
  }
  const std::filesystem::path directory = std::filesystem::path(to).parent_path();
  const std::string parent = directory.empty() ? std::string(".") : directory.string();
  const int fd = open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // a directory that may be written but not read: the rename itself is done
  fsync(fd);
  close(fd);
}

}  // namespace tally::train
