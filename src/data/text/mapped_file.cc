#include "src/data/text/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

namespace tally::train {
namespace {

constexpr int64_t nanoseconds_between_looks = 1'000'000'000;

int64_t now_in_nanoseconds() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  const auto fail = [&](int fd) {
    const int error = errno;
    if (fd >= 0) close(fd);
    throw std::runtime_error(fmt::format("'{}' cannot be read: {}", path_, std::strerror(error)));
  };
  // A FIFO would be opened when somebody writes to it, perhaps never.
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail(fd);
  struct stat status {};
  if (fstat(fd, &status) != 0) fail(fd);
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    fail(fd);
  }
  if (!S_ISREG(status.st_mode)) {
    close(fd);
    throw std::runtime_error(fmt::format("'{}' cannot be read: it is not a regular file", path_));
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ > 0) {
    void* data = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) fail(fd);
    data_ = static_cast<const char*>(data);
  }
  fd_ = fd;
}

void MappedFile::watch() {
  if (data_ != nullptr && !mapping_) mapping_ = std::make_unique<WatchedMapping>(data_, size_);
}

void MappedFile::check() const {
  if (!mapping_) return;
  const bool lost = mapping_->lost();
  const int64_t now = now_in_nanoseconds();
  if (!lost && now < next_look_.load(std::memory_order_relaxed)) return;
  next_look_.store(now + nanoseconds_between_looks, std::memory_order_relaxed);
  struct stat status {};
  if (fstat(fd_, &status) == 0 && static_cast<size_t>(status.st_size) < size_)
    throw std::runtime_error(
        fmt::format("'{}' was cut short while it was read, from {} bytes to {}: make it again, and "
                    "leave it alone while runs read it",
                    path_, size_, status.st_size));
  if (lost)
    throw std::runtime_error(
        fmt::format("'{}' has lost bytes while it was read: leave it alone while runs read it, or "
                    "look at the disk or file server that holds it",
                    path_));
}

MappedFile::~MappedFile() {
  mapping_.reset();
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
  close(fd_);
}

}  // namespace tally::train
