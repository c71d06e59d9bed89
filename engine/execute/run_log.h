// run.log: what happened in a run and when, for people. The journal, not this, is the truth.
#pragma once

#include <string>

namespace tally {

class RunLog {
 public:
  explicit RunLog(const std::string& path);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;
  // One line with the time before it; further lines of the text are indented.
  void write(const std::string& text);

 private:
  int fd_ = -1;
};

}  // namespace tally
