#include "src/data/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

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
  if (fsync(fd_) != 0) fail("cannot be brought to the disk");
  keep_ = true;
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
