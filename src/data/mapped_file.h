// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <string>

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

 private:
  std::string path_;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tally::train
