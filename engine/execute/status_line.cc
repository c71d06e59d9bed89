#include "engine/execute/status_line.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "engine/base/terminal.h"

namespace tally {
namespace {

class Nowhere final : public StatusOutput {
 public:
  bool is_terminal() const override { return false; }
  int columns() const override { return 80; }
  void write(const std::string& /*text*/) override {}
};

StatusOutput& nowhere() {
  static Nowhere output;
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
    : output_(output != nullptr ? output : &nowhere()), verbose_(verbose) {
  shown_ = !hidden && output_->is_terminal();
}

std::string StatusLine::text(const RunProgress& progress, Clock::time_point now) const {
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
  // The estimate uses what ended in this session. Steps that do not exist yet are not counted, so
  // it is a lower bound.
  const int here = ended - done_at_start_;
  if (here > 0 && progress.total > ended) {
    line += fmt::format("  ETA {}", format_duration(elapsed / here * (progress.total - ended)));
  }
  if (!progress.current.empty()) line += fmt::format("  {}", without_controls(progress.current));
  return line;
}

size_t StatusLine::table_rows() const {
  const int rows = output_->rows() - 3;
  return rows > 2 ? static_cast<size_t>(rows) : 2;
}

size_t StatusLine::table_columns() const {
  return static_cast<size_t>(output_->columns() > 1 ? output_->columns() - 1 : 1);
}

bool StatusLine::is_small() const {
  return output_->rows() < 12 || output_->columns() < 60;
}

void StatusLine::update(const RunProgress& progress, Clock::time_point now,
                        const std::vector<std::string>& table) {
  if (done_at_start_ < 0) done_at_start_ = progress.done + progress.failed + progress.lost;
  if (!shown_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  std::string line = text(progress, now);
  if (line.size() > table_columns()) line.resize(table_columns());
  std::string drawing = "\r\033[K";
  if (drawn_above_ > 0) drawing = fmt::format("\r\033[{}A\033[J", drawn_above_);
  for (const std::string& row : table) drawing += row + "\n";
  output_->write(drawing + line);
  drawn_ = true;
  drawn_above_ = table.size();
}

void StatusLine::print(const std::string& text, bool always) {
  if (!verbose_ && !always) return;
  finish();
  output_->write((output_->is_terminal() ? without_controls(text) : text) + "\n");
  next_ = Clock::time_point();
}

void StatusLine::finish() {
  if (drawn_ && drawn_above_ > 0) {
    output_->write(fmt::format("\r\033[{}A\033[J", drawn_above_));
  } else if (drawn_) {
    output_->write("\r\033[K");
  }
  drawn_ = false;
  drawn_above_ = 0;
}

}  // namespace tally
