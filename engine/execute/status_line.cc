#include "engine/execute/status_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tally {
namespace {

class StandardError final : public StatusOutput {
 public:
  bool is_terminal() const override {
    const char* kind = getenv("TERM");
    return isatty(2) == 1 && kind != nullptr && strcmp(kind, "dumb") != 0;
  }
  int columns() const override {
    winsize size{};
    return ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }
  void write(const std::string& text) override {
    [[maybe_unused]] const ssize_t put = ::write(2, text.data(), text.size());
  }
};

StatusOutput& standard_error() {
  static StandardError output;
  return output;
}

void add_count(std::string& line, int count, const char* what) {
  if (count > 0) line += fmt::format(", {} {}", count, what);
}

}  // namespace

std::string format_duration(double seconds) {
  const auto whole = static_cast<long long>(seconds < 0 ? 0 : seconds);
  std::array<char, 48> text{};
  if (whole >= 3600) {
    snprintf(text.data(), text.size(), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
             whole % 60);
  } else {
    snprintf(text.data(), text.size(), "%02lld:%02lld", whole / 60, whole % 60);
  }
  return text.data();
}

StatusLine::StatusLine(StatusOutput* output, bool hidden, bool verbose)
    : output_(output != nullptr ? output : &standard_error()), verbose_(verbose) {
  shown_ = !hidden && output_->is_terminal();
}

std::string StatusLine::text(const Progress& progress, Clock::time_point now) const {
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const int ended = progress.done + progress.failed + progress.lost;
  std::string line = fmt::format("[{}/{}]", ended, progress.total);
  std::string states;
  add_count(states, progress.running, "running");
  add_count(states, progress.jobs, "in the queue");
  add_count(states, progress.waiting, "waiting");
  add_count(states, progress.failed, "failed");
  add_count(states, progress.lost, "lost");
  if (!states.empty()) line += states.substr(1);
  line += fmt::format("  {}", format_duration(elapsed));
  // From what ended in this session; steps still to come are not counted, so it is a lower bound.
  const int here = ended - done_at_start_;
  if (here > 0 && progress.total > ended) {
    line += fmt::format("  ETA {}", format_duration(elapsed / here * (progress.total - ended)));
  }
  if (!progress.current.empty()) line += fmt::format("  {}", progress.current);
  return line;
}

void StatusLine::update(const Progress& progress, Clock::time_point now) {
  if (done_at_start_ < 0) done_at_start_ = progress.done + progress.failed + progress.lost;
  if (!shown_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  std::string line = text(progress, now);
  const auto room = static_cast<size_t>(output_->columns() > 1 ? output_->columns() - 1 : 1);
  if (line.size() > room) line.resize(room);
  output_->write("\r\033[K" + line);
  drawn_ = true;
}

void StatusLine::print(const std::string& text, bool always) {
  if (!verbose_ && !always) return;
  finish();
  output_->write(text + "\n");
  next_ = Clock::time_point();
}

void StatusLine::finish() {
  if (drawn_) output_->write("\r\033[K");
  drawn_ = false;
}

}  // namespace tally
