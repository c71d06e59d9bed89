#include "engine/cli/terminal_output.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cctype>
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

void say(const std::string& text) {
  [[maybe_unused]] const ssize_t put = write(STDERR_FILENO, text.data(), text.size());
}

Parts::OnInterrupt ask_person(size_t jobs, const std::function<bool()>& repeated) {
  say(fmt::format(
      "\n{} in the queue. [l]eave {} there, to be followed by `continue` or `watch`; "
      "[c]ancel; or [w]ait on? ",
      jobs == 1 ? "One job is" : fmt::format("{} jobs are", jobs), jobs == 1 ? "it" : "them"));
  for (;;) {
    // A second ctrl-C also counts as an answer.
    if (repeated()) return Parts::OnInterrupt::leave;
    pollfd waiting{STDIN_FILENO, POLLIN, 0};
    if (poll(&waiting, 1, 100) <= 0) continue;
    std::array<char, 256> line{};
    const ssize_t got = read(STDIN_FILENO, line.data(), line.size());
    if (got <= 0) return Parts::OnInterrupt::leave;
    switch (std::tolower(static_cast<unsigned char>(line[0]))) {
      case 'l':
        return Parts::OnInterrupt::leave;
      case 'c':
        return Parts::OnInterrupt::cancel;
      case 'w':
        return Parts::OnInterrupt::keep_running;
      default:
        say("l, c or w? ");
    }
  }
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

std::function<Parts::OnInterrupt(size_t, const std::function<bool()>&)> interrupt_question() {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return nullptr;
  return ask_person;
}

}  // namespace tally
