#include "tests/support/shell.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace tally::testing {

namespace fs = std::filesystem;

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int count_of(const std::string& text, const std::string& line) {
  int count = 0;
  std::istringstream lines(text);
  for (std::string each; std::getline(lines, each);) count += each == line ? 1 : 0;
  return count;
}

Shell::Shell() {
  std::string folder = "/tmp/tally-survive-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  root_ = folder;
  const char* program = std::getenv("TALLY_PROGRAM");
  REQUIRE(program != nullptr);
  setenv("TALLY", program, 1);
}

Shell::~Shell() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void Shell::clear() const {
  for (const auto& entry : fs::directory_iterator(root_)) fs::remove_all(entry.path());
}

namespace {

// Offered commands name the program as it was called, which is another path on each machine.
std::string as_tally(std::string text) {
  const std::string program = std::getenv("TALLY");
  for (size_t at = text.find(program); at != std::string::npos; at = text.find(program, at))
    text.replace(at, program.size(), "tally");
  return text;
}

}  // namespace

// What is printed goes beside the folder, so that a full or read-only folder does not matter.
Ran Shell::sh(const std::string& command) const {
  const std::string beside = root_.string();
  // Nothing here may hang: a command that does is ended and shows as 124.
  // The machine that runs the tests may be busy, which would show in every table.
  std::ofstream(beside + ".sh") << "export TALLY_QUIET_CHECK=${TALLY_QUIET_CHECK-off}\ncd "
                                << beside << "\n"
                                << command << "\n";
  const std::string whole =
      "timeout -k 1 60 sh " + beside + ".sh >" + beside + ".out 2>" + beside + ".err";
  const int status = std::system(whole.c_str());
  Ran ran{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          as_tally(read_all(beside + ".out")), as_tally(read_all(beside + ".err"))};
  fs::remove(beside + ".sh");
  fs::remove(beside + ".out");
  fs::remove(beside + ".err");
  return ran;
}

void Shell::file(const std::string& name, const std::string& text) const {
  fs::create_directories((root_ / name).parent_path());
  std::ofstream(root_ / name, std::ios::binary) << text;
}

}  // namespace tally::testing
