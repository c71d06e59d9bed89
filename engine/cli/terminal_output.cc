#include "engine/cli/terminal_output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tally {
namespace {

// The terminal's size; what it does not know is 0.
winsize size_of_terminal() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  return size;
}

}  // namespace

bool TerminalOutput::is_terminal() const {
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && kind != nullptr && std::strcmp(kind, "dumb") != 0;
}

int TerminalOutput::columns() const {
  const int columns = size_of_terminal().ws_col;
  return columns > 0 ? columns : 80;
}

int TerminalOutput::rows() const {
  const int rows = size_of_terminal().ws_row;
  return rows > 0 ? rows : 24;
}

void TerminalOutput::write(const std::string& text) {
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, text.data(), text.size());
}

void TerminalOutput::show(const char* bytes, size_t count) {
  std::fwrite(bytes, 1, count, stdout);
  std::fflush(stdout);
}

}  // namespace tally
