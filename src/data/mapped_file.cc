#include "src/data/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace tally::train {

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  const auto fail = [&](int fd) {
    const int error = errno;
    if (fd >= 0) close(fd);
    throw std::runtime_error(fmt::format("'{}' cannot be read: {}", path_, std::strerror(error)));
  };
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(fd);
  struct stat status {};
  if (fstat(fd, &status) != 0) fail(fd);
  if (!S_ISREG(status.st_mode)) {
    errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    fail(fd);
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ > 0) {
    void* data = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) fail(fd);
    data_ = static_cast<const char*>(data);
  }
  close(fd);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
}

}  // namespace tally::train
