// One line on a terminal that says how a run goes; nothing anywhere else.
#pragma once

#include <chrono>
#include <string>

namespace tally {

// Where the line goes. Tests use a string; the real one is standard error when that is a terminal.
class StatusOutput {
 public:
  virtual ~StatusOutput() = default;
  virtual bool is_terminal() const = 0;
  virtual int columns() const = 0;
  virtual void write(const std::string& text) = 0;
};

struct Progress {
  int total = 0, done = 0, failed = 0, running = 0, waiting = 0, jobs = 0, lost = 0;
  std::string current;  // what runs, in a word: "train 000007"
};

class StatusLine {
 public:
  using Clock = std::chrono::steady_clock;
  // `output` null: standard error.
  StatusLine(StatusOutput* output, bool hidden, bool verbose);
  ~StatusLine() { finish(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // Redraws at most ten times a second.
  void update(const Progress& progress, Clock::time_point now = Clock::now());
  // A line that stays, above the status line: of workpackages that ended (verbose only), of
  // failures.
  void print(const std::string& text, bool always);
  // Erases the line.
  void finish();
  bool shown() const { return shown_; }

 private:
  std::string text(const Progress& progress, Clock::time_point now) const;
  StatusOutput* output_;
  bool shown_ = false;
  bool verbose_ = false;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
  int done_at_start_ = -1;
};

// "1:02:03", "02:03".
std::string format_duration(double seconds);

}  // namespace tally
