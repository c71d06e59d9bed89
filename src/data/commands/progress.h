// A line on the terminal that says how far a long work is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tally::train {

// Writes to standard error, and only when that is a terminal.
class ProgressBar {
 public:
  // `total` in bytes; 0: unknown.
  explicit ProgressBar(int64_t total);
  ~ProgressBar();  // removes the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void update(int64_t done, int64_t documents, int64_t tokens);

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_;
  int64_t total_;
  Clock::time_point begin_, last_;
  bool shown_ = false;
};

// The line itself (no colour, no line end): a bar, share, amount, rate, time left.
std::string progress_line(int64_t done, int64_t total, double seconds, int64_t documents,
                          int64_t tokens);
// "12.3 MB" (powers of 1000).
std::string bytes_text(int64_t bytes);

}  // namespace tally::train
