// A folder of its own in which the real `tally` is called, as a person would call it.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/suites.h"

namespace tally::testing {

struct Ran {
  int code = 0;  // exit code, or 128 + signal
  std::string out, err;
};

std::string read_all(const std::filesystem::path& path);
bool has(const std::string& text, const std::string& part);
// How often `line` stands as a whole line in `text`.
int count_of(const std::string& text, const std::string& line);

class Shell {
 public:
  Shell();
  ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  // Runs a shell command in the folder; $TALLY is the program.
  Ran sh(const std::string& command) const;
  Ran tally(const std::string& arguments) const { return sh("\"$TALLY\" " + arguments); }
  void file(const std::string& name, const std::string& text) const;
  std::string content(const std::string& name) const { return read_all(root_ / name); }
  bool exists(const std::string& name) const { return std::filesystem::exists(root_ / name); }
  // The folder again empty.
  void clear() const;
  std::string root() const { return root_.string(); }

 private:
  std::filesystem::path root_;
};

}  // namespace tally::testing
