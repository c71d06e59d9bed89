// Reads input files from disk, or from the texts that a run has stored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/base/status.h"
#include "engine/read/document.h"

namespace tally {

// A person may name a stream of the shell, as /dev/stdin or the /dev/fd/63 of `<(command)`.
enum class NamedBy { person, file };

// Reads `path` from ReadOptions::stored or else from disk. The text is UTF-8 without a byte order
// mark: UTF-16 is converted, and so is Latin-1 in XML that declares it. A failure's message is one
// sentence that names the path. It is a failure, too, if the path is that of no regular file, which
// might never end, or of a stream that a file names.
Status load_text(const std::string& path, const ReadOptions& options, NamedBy by,
                 std::string* text);

// Searches `directories` for `name` in order, then ReadOptions::builtin_path. A run's
// stored files come before those of builtin_path on the disk, wherever they lay. An absolute name is
// used as it is. Returns "" if there is no such file.
std::string find_file(const std::string& name, const std::vector<std::string>& directories,
                      const ReadOptions& options);

// The directories of $JUBE_INCLUDE_PATH.
std::vector<std::string> environment_include_path();

// The directory part of a path, or "." if it has none.
std::string directory_of(const std::string& path);
// `directory`/`name`. It is just `name` if `name` is absolute or `directory` is ".".
std::string join_path(const std::string& directory, const std::string& name);

// Converts byte offsets, or lines and byte columns, to marks.
class LineIndex {
 public:
  LineIndex(uint32_t file, std::string_view text);
  Mark at_offset(size_t offset) const;
  // Both count from 0.
  Mark at(size_t line, size_t byte_column) const;
  // The offset of this position in the text.
  size_t offset(size_t line, size_t byte_column) const;

 private:
  uint32_t file_;
  std::string_view text_;
  std::vector<size_t> starts_;
};

}  // namespace tally
