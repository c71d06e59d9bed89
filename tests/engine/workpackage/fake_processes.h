// Processes that are not started: each start is noted with all that the command would have seen,
// and ends as the test wants it.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/workspace/environment.h"
#include "engine/workspace/process.h"
#include "tests/engine/workpackage/draw.h"

namespace tally::testing {

// What a command was given.
struct Seen {
  std::string command, directory, stdout_path;
  Environment environment;
};

// Thrown where the engine is to be killed: what is not in the journal then is lost.
struct Killed {};

class FakeProcesses final : public ProcessRunner {
 public:
  FakeProcesses(uint64_t seed, int fail_percent) : random_(seed), fail_percent_(fail_percent) {}

  Status start(const ProcessSpec& spec, int* pid) override;
  bool wait_any(std::chrono::milliseconds timeout, ProcessResult* result) override;
  void kill_tree(int pid, int signal) override;
  int interrupted() const override { return interrupt_at >= 0 && starts_ > interrupt_at ? 1 : 0; }

  std::vector<Seen> seen;
  int kill_at = -1;       // the engine is killed at this start
  int interrupt_at = -1;  // somebody presses ctrl-C after this start

 private:
  Random random_;
  int fail_percent_;
  int starts_ = 0;
  std::deque<ProcessResult> running_;
};

// The text between "<<'END'" and "END", or, of a launch line, what echo is given.
std::string printed_by(const std::string& command);
// <name>value</name>... as pairs, in order.
std::vector<std::pair<std::string, std::string>> named_values(const std::string& text);

}  // namespace tally::testing
