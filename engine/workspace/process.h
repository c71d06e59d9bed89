// Interface to the operating system's processes. Tests use a fake to inject faults and the real one
// to check the behaviour.
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
  bool merge = false;                    // send standard error to standard output
  bool own_outputs = false;              // the output files may not be links
};
struct ProcessResult {
  int pid = 0;
  int status = 0;  // exit code, or 128 + signal
  bool signalled = false;
};

// Starts processes and waits for any of them. Each gets a session and process group of its own,
// standard input from /dev/null and default signal handling.
class ProcessRunner {
 public:
  virtual ~ProcessRunner() = default;
  // Fails with one sentence when the program, the directory or an output file cannot be opened.
  virtual Status start(const ProcessSpec& spec, int* pid) = 0;
  // Waits for the next process to end, at most `timeout` (negative: no limit). Returns false on
  // time-out, and when the engine was asked to stop (SIGINT, SIGTERM); see interrupted().
  virtual bool wait_any(std::chrono::milliseconds timeout, ProcessResult* result) = 0;
  // Sends a signal to a process and all its descendants, including those outside its process group.
  // Also works on the remaining descendants after the process has ended.
  virtual void kill_tree(int pid, int signal) = 0;
  // How often the engine was asked to stop.
  virtual int interrupted() const { return 0; }
  // Whether the last request came from a person at the terminal (SIGINT).
  virtual bool by_person() const { return true; }
};

// The real implementation. While it exists, it handles SIGINT, SIGTERM, SIGHUP and SIGCHLD of this
// process and adopts orphaned descendants. Only one may exist at a time.
std::unique_ptr<ProcessRunner> make_process_runner();

}  // namespace tally
