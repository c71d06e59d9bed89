// Files that appear whole or not at all: written under another name, synced, renamed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tally::train {

// A buffered file to append to. Every error throws std::runtime_error that names the file and says
// why.
class OutputFile {
 public:
  // Creates or empties PATH. `exclusive`: throws with a sentence when another process is writing
  // it.
  explicit OutputFile(std::string path, bool exclusive = false);
  // Closes without sync; a file that was not kept() is removed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void append(const void* data, size_t bytes);
  template <typename T>
  void append_value(const T& value) {
    append(&value, sizeof value);
  }
  int64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // Flushes and reads back from the start: only for spool files.
  void rewind_for_reading();
  size_t read(void* data, size_t bytes);
  // Everything written is on the disk; the file is not removed with this object.
  void sync_and_keep();

 private:
  void flush();
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0;
  bool keep_ = false;
  std::vector<char> buffer_;
};

// The destination of a file that the user names.
struct Destination {
  std::string path;      // the end of a chain of links, whether there is a file or not
  bool replaced = true;  // a regular file, or none yet; otherwise write_into() writes it
};
// A link stays, and its target is replaced. A device, a FIFO and what the process has open
// (/dev/stdout) are written into, because they must stay what they are.
Destination destination_of(const std::string& path);
// Throws std::system_error that names the path; ENXIO: nobody reads the FIFO.
void write_into(const std::string& path, const std::string& text);

// rename(2), then the directory is synced so that the new name survives a crash.
void rename_durably(const std::string& from, const std::string& to);

}  // namespace tally::train
