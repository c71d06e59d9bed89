// Runs a command of the scheduler, or another program, to its end and returns what it prints.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

namespace tally {

struct CommandResult {
  // Exit code; -1: could not be started, ended by a signal, timed out or was abandoned.
  int status = -1;
  bool started = false;
  int signal = 0;  // that ended the command
  std::string out, err;
};

struct ExternalCommand {
  std::vector<std::string> words;
  std::string directory;                 // empty: the engine's directory
  std::vector<std::string> environment;  // NAME=value, complete
  // A limit, because Slurm's commands hang when munge or the controller is down.
  std::chrono::milliseconds patience{60000};
  const std::atomic<bool>* given_up = nullptr;  // set by another thread to end the command
};

// Runs the command in a session of its own, so that ctrl-C reaches only the engine and does not
// interrupt a submission.
CommandResult run_external(const ExternalCommand& spec);

// Returns "sbatch: ..." with the message of the command that failed.
std::string error_text(const CommandResult& result, const std::string& command);

}  // namespace tally
