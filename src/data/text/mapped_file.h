// A file mapped read-only into memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "src/data/text/bus_errors.h"

namespace tally::train {

class MappedFile {
 public:
  // Throws std::runtime_error ("PATH cannot be read: why").
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  const std::string& path() const { return path_; }
  const char* data() const { return data_; }  // null when the file is empty
  size_t size() const { return size_; }

  // Reads of lost bytes return zeros from here on, instead of ending the process, and check()
  // reports them. It serves a file that is read for as long as the program runs.
  void watch();
  // Call it after reading and before using what was read. Throws std::runtime_error with one
  // sentence when the file was truncated or its disk failed. A truncation within the file's last
  // page leaves zeros without any signal; it is found within a second.
  void check() const;

 private:
  std::string path_;
  const char* data_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;  // open where it is watched
  std::unique_ptr<WatchedMapping> mapping_;
  mutable std::atomic<int64_t> next_look_{0};  // at the file's size, in nanoseconds
};

}  // namespace tally::train
