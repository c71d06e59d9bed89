#include "engine/cli/interrupt.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cctype>

namespace tally {
namespace {

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

std::function<Parts::OnInterrupt(size_t, const std::function<bool()>&)> interrupt_question() {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return nullptr;
  return ask_person;
}

}  // namespace tally
