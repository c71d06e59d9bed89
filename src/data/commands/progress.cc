#include "src/data/commands/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tally::train {

std::string bytes_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (value /= 1000; value >= 999.95 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string progress_line(int64_t done, int64_t total, double seconds, int64_t documents,
                          int64_t tokens) {
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const std::string counts = fmt::format("{}/s  {} documents  {} tokens",
                                         bytes_text(static_cast<int64_t>(rate)), documents, tokens);
  if (total <= 0) return fmt::format("{}  {}", bytes_text(done), counts);
  constexpr int kWidth = 24;
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const auto full = static_cast<size_t>(share * kWidth);
  std::string left;
  if (rate > 0 && done < total) {
    const auto rest = std::llround(static_cast<double>(total - done) / rate);
    left = fmt::format("  {}:{:02d} left", rest / 60, rest % 60);
  }
  return fmt::format("[{}{}] {:3.0f}%  {} of {}  {}{}", std::string(full, '#'),
                     std::string(kWidth - full, '.'), share * 100, bytes_text(done),
                     bytes_text(total), counts, left);
}

ProgressBar::ProgressBar(int64_t total)
    : terminal_(isatty(STDERR_FILENO) == 1), total_(total), begin_(Clock::now()), last_(begin_) {}

ProgressBar::~ProgressBar() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::update(int64_t done, int64_t documents, int64_t tokens) {
  if (!terminal_) return;
  const Clock::time_point now = Clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  std::fputs(("\r\033[K" + progress_line(done, total_, seconds, documents, tokens)).c_str(),
             stderr);
  std::fflush(stderr);
}

}  // namespace tally::train
