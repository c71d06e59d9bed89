// Input files from disk, or from the texts a run has stored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/mark.h"
#include "engine/base/status.h"
#include "engine/read/document.h"

namespace tally {

// Reads `path`: ReadOptions::stored first, then the disk. The text comes back as UTF-8 without a
// byte order mark (UTF-16 and, for XML that declares it, Latin-1 are converted). The message of a
// failure is one clear sentence without the path's place.
Status load_text(const std::string& path, const ReadOptions& options, std::string* text);

// Finds `name` in `directories` in order, then in ReadOptions::builtin_path. An absolute name is
// taken as it is. Returns the path, or "" when there is no such file.
std::string find_file(const std::string& name, const std::vector<std::string>& directories,
                      const ReadOptions& options);

// The directories of $JUBE_INCLUDE_PATH.
std::vector<std::string> environment_include_path();

// The directory part of a path; "." when it has none.
std::string directory_of(const std::string& path);
// `directory`/`name`, or `name` when it is absolute or `directory` is ".".
std::string join_path(const std::string& directory, const std::string& name);

// From byte offsets, or lines and byte columns, to marks.
class LineIndex {
 public:
  LineIndex(uint32_t file, std::string_view text);
  Mark at_offset(size_t offset) const;
  // Both count from 0.
  Mark at(size_t line, size_t byte_column) const;
  // Where in the text that is.
  size_t offset(size_t line, size_t byte_column) const;

 private:
  uint32_t file_;
  std::string_view text_;
  std::vector<size_t> starts_;
};

}  // namespace tally
