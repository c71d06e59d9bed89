// run.log tells people what happened in a run and when. The engine itself relies only on the
// journal.
#pragma once

#include <string>

namespace tally {

class RunLog {
 public:
  // Commands are in it. `secrets`: they may show some, so that only the user may read it.
  explicit RunLog(const std::string& path, bool secrets = false);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;
  // Writes one line that starts with the time. Further lines of the text are indented.
  void write(const std::string& text);

 private:
  int fd_ = -1;
};

}  // namespace tally
