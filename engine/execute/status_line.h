// One line on a terminal that says how a run goes, and a table of its jobs above it; nothing
// anywhere else.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace tally {

// Where the line goes. Tests use a string; the real one is standard error when that is a terminal.
class StatusOutput {
 public:
  virtual ~StatusOutput() = default;
  virtual bool is_terminal() const = 0;
  virtual int columns() const = 0;
  virtual int rows() const { return 24; }
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

  // Redraws at most ten times a second. `table`: lines above it, drawn anew with it.
  void update(const Progress& progress, Clock::time_point now = Clock::now(),
              const std::vector<std::string>& table = {});
  // How much room there is for such a table.
  size_t table_rows() const;
  size_t table_columns() const;
  // A line that stays, above the status line: of workpackages that ended (verbose only), of
  // failures.
  void print(const std::string& text, bool always);
  // Erases the line.
  void finish();
  bool shown() const { return shown_; }
  // Whether an update now would draw.
  bool due(Clock::time_point now = Clock::now()) const { return shown_ && now >= next_; }

 private:
  std::string text(const Progress& progress, Clock::time_point now) const;
  StatusOutput* output_;
  bool shown_ = false;
  bool verbose_ = false;
  bool drawn_ = false;
  size_t drawn_above_ = 0;  // lines of the table on the screen
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
  int done_at_start_ = -1;
};

// "1:02:03", "02:03".
std::string format_duration(double seconds);

}  // namespace tally
