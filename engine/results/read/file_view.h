// A file's text as Python's text mode reads it, without holding it in memory.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "engine/base/digest.h"
#include "engine/base/status.h"

namespace tally {

// The bytes [from, to) of a file, without a `to` all from `from` on.
struct FilePart {
  long long from = 0;
  std::optional<long long> to;
};

// Reads a small file and maps any other: a mapping costs several times what reading a page does. If
// the file contains carriage returns, \r\n and \r become \n in a copy. Bytes that are not UTF-8
// become characters there (text_of_bytes()). The copy is in memory when small and otherwise in an
// unlinked temporary file, so anonymous memory stays small whatever the file's size. Movable. The
// text lives as long as the object.
class FileView {
 public:
  FileView() = default;
  ~FileView();
  FileView(FileView&& other) noexcept;
  FileView& operator=(FileView&& other) noexcept;
  FileView(const FileView&) = delete;
  FileView& operator=(const FileView&) = delete;

  static Status open(const std::string& path, FileView* out, const FilePart& part = {});

  std::string_view text() const { return text_; }
  // Says that the text before `at` is not needed soon, so that a large file does not fill the
  // memory. It stays readable.
  void passed(const char* at);
  // While it exists, a search that says nothing for long, such as one in a line of a gigabyte, does
  // not fill the memory either.
  class Search {
   public:
    explicit Search(const FileView& view);
    ~Search();
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;

   private:
    std::mutex mutex_;
    std::condition_variable end_;
    bool ended_ = false;
    std::thread thread_;  // gives pages back
  };
  // An error if the file has become shorter since it was opened. The text read of it may then be
  // neither its old nor its new content.
  Status unchanged(const std::string& path) const;
  // Size and time of the file when it was opened; no inode.
  FileStamp stamp() const { return {0, on_disk_, written_ns_}; }
  // When it was last changed in any way (st_ctim), which nobody can set.
  long long changed_ns() const { return changed_ns_; }
  // Whether no byte is above 127.
  bool ascii() const { return ascii_; }
  // Whether bytes_of_text() of a part of the text may differ from it.
  bool holds_bytes() const { return holds_bytes_; }

 private:
  void release();
  void keep(const FilePart& part);
  Status read(int file, const std::string& path);
  Status map(int file, const std::string& path);
  Status load(int file, const std::string& path);
  Status make_text(const std::string& path);

  void* map_ = nullptr;
  size_t map_size_ = 0;
  size_t passed_ = 0;      // bytes of the map that have been given back
  long long on_disk_ = 0;  // the file's size when it was opened
  long long written_ns_ = 0, changed_ns_ = 0;
  bool read_ = false;     // and not mapped: what happens to the file later does not matter
  bool shorter_ = false;  // it ended before its size while it was read
  std::string copy_;
  std::string_view text_;
  bool ascii_ = true;
  bool holds_bytes_ = false;
};

}  // namespace tally
