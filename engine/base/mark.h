// The place where a value is written in the user's files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

// A place in a source file. Line and column count from 1, columns in Unicode code points; line 0
// means "no place" (a command-line value, say). `file` indexes Sources.
struct Mark {
  uint32_t file = 0;
  uint32_t line = 0;
  uint32_t column = 0;
  bool known() const { return line != 0; }
  bool operator==(const Mark&) const = default;
};

// A string that the user wrote, and where it is written.
struct Text {
  std::string value;
  Mark mark;
};

// The files read so far, by number. Their text is kept so that an error can show the line
// concerned. Append-only: marks stay valid for the life of the object. Not thread-safe.
class Sources {
 public:
  // Adds a file's text and returns its number. `name` is the path as the user wrote it.
  uint32_t add(std::string name, std::string text);
  const std::string& name(uint32_t file) const { return files_[file].name; }
  const std::string& text(uint32_t file) const { return files_[file].text; }
  // The line that `mark` is on, without its newline. Empty when the mark is unknown.
  std::string_view line(const Mark& mark) const;
  size_t size() const { return files_.size(); }

 private:
  struct File {
    std::string name;
    std::string text;
  };
  std::vector<File> files_;
};

}  // namespace tally
