// One line on a terminal that shows the progress of a run, below a table of its jobs. It is shown
// only on a terminal.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace tally {

// Shows a person how a run goes on. The command line's is standard error; tests use a string.
class StatusOutput {
 public:
  virtual ~StatusOutput() = default;
  virtual bool is_terminal() const = 0;
  virtual int columns() const = 0;
  virtual int rows() const { return 24; }
  virtual void write(const std::string& text) = 0;
  // Shows what a workpackage's commands printed, for -vv.
  virtual void show(const char* /*bytes*/, size_t /*count*/) {}
};

struct RunProgress {
  int total = 0, done = 0, failed = 0, running = 0, waiting = 0, jobs = 0, lost = 0;
  std::string current;  // what runs now, in short: "train 000007"
};

class StatusLine {
 public:
  using Clock = std::chrono::steady_clock;
  // `output` null: nothing is shown.
  StatusLine(StatusOutput* output, bool hidden, bool verbose);
  ~StatusLine() { finish(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // Redraws at most ten times a second. `table`: lines above the status line, redrawn with it.
  void update(const RunProgress& progress, Clock::time_point now = Clock::now(),
              const std::vector<std::string>& table = {});
  // The room for such a table.
  size_t table_rows() const;
  size_t table_columns() const;
  // Whether the window has room for the status line alone.
  bool is_small() const;
  // Prints a permanent line above the status line: for each workpackage that ended (verbose only),
  // and for failures.
  void print(const std::string& text, bool always);
  // Erases the line.
  void finish();
  bool shown() const { return shown_; }
  // Whether update() would draw now.
  bool due(Clock::time_point now = Clock::now()) const { return shown_ && now >= next_; }

 private:
  std::string text(const RunProgress& progress, Clock::time_point now) const;
  StatusOutput* output_;
  bool shown_ = false;
  bool verbose_ = false;
  bool drawn_ = false;
  size_t drawn_above_ = 0;  // lines of the table on the screen
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
  int done_at_start_ = -1;
};

// Returns "1:02:03" or "02:03".
std::string format_duration(double seconds);

}  // namespace tally
