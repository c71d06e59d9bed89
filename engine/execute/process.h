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

// Starts processes, each in a session and process group of its own, with standard input from
// /dev/null and default signal handling, and waits for any of them.
class ProcessRunner {
 public:
  virtual ~ProcessRunner() = default;
  // Fails with one sentence when the program, the directory or an output file cannot be opened.
  virtual Status start(const ProcessSpec& spec, int* pid) = 0;
  // Waits for the next process to end, `timeout` at most (negative: for ever). False on time-out,
  // and when the engine was asked to stop (SIGINT, SIGTERM): see interrupted().
  virtual bool wait_any(std::chrono::milliseconds timeout, ProcessResult* result) = 0;
  // Sends a signal to a process and everything it started, even what has left its process group.
  // Also for what is left of it after it ended.
  virtual void kill_tree(int pid, int signal) = 0;
  // How often the engine was asked to stop.
  virtual int interrupted() const { return 0; }
  // Whether the last time it was a person at the terminal (SIGINT).
  virtual bool by_person() const { return true; }
};

// The real one. While it lives it handles SIGINT, SIGTERM, SIGHUP and SIGCHLD of this process, and
// adopts what its children leave behind. One at a time.
std::unique_ptr<ProcessRunner> make_process_runner();

}  // namespace tally
