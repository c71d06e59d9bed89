// Seam to the operating system's processes. Tests use a fake for faults, the real one for truth.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

struct ProcessSpec {
  std::vector<std::string> argv;
  std::string directory;
  std::vector<std::string> environment;  // NAME=value, complete
  std::string stdout_path, stderr_path;  // appended to; empty: the engine's own
  bool merge = false;                    // standard error into standard output
};
struct ProcessResult {
  int pid = 0;
  int status = 0;  // exit code, or 128 + signal
  bool signalled = false;
};

// Starts processes, each in a process group of its own, and waits for any of them.
class ProcessRunner {
 public:
  virtual ~ProcessRunner() = default;
  virtual Status start(const ProcessSpec& spec, int* pid) = 0;
  // Waits for the next process to end, `timeout` at most (negative: for ever). False on time-out.
  virtual bool wait_any(std::chrono::milliseconds timeout, ProcessResult* result) = 0;
  // Ends a process and everything it started.
  virtual void kill_tree(int pid, int signal) = 0;
};
std::unique_ptr<ProcessRunner> make_process_runner();

}  // namespace tally
