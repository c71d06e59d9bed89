#include "src/train/run/output.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace tally::train {
namespace {

// The errno of the first line of standard output that was lost; 0: none.
std::atomic<int> first_failure{0};

void write_whole(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n >= 0) {
      at += static_cast<size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    // Another process that shares the stream may have made it non-blocking.
    if (errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      poll(&wait, 1, -1);
      continue;
    }
    int none = 0;
    if (fd == STDOUT_FILENO) first_failure.compare_exchange_strong(none, errno);
    return;
  }
}

void print_message(const char* kind, const std::string& text) {
  write_whole(STDERR_FILENO, fmt::format("tally-train: {}: {}\n", kind, text));
}

}  // namespace

void prepare_output() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
}

void print_text(const std::string& text) {
  std::fflush(stdout);  // earlier output of libraries comes first
  write_whole(STDOUT_FILENO, text);
}

void print_line(const std::string& line) {
  print_text(line + "\n");
}

void print_note(const std::string& text) {
  print_message("note", text);
}

void print_warning(const std::string& text) {
  print_message("warning", text);
}

void print_error(const std::string& text) {
  print_message("error", text);
}

void print_stopped(const std::string& why) {
  print_message("stopped", why);
}

std::string output_failure() {
  const int failure = first_failure;
  if (failure == 0) return "";
  return fmt::format("standard output cannot be written: {}", std::strerror(failure));
}

}  // namespace tally::train
