// A command of the scheduler's, run to its end for what it prints.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

namespace tally {

struct CommandResult {
  int status = -1;  // exit code; -1: could not be run, took too long or was given up
  std::string out, err;
};

struct CommandSpec {
  std::vector<std::string> words;
  std::string directory;                 // empty: the engine's
  std::vector<std::string> environment;  // NAME=value, complete
  // When munge or the controller is away, Slurm's commands hang.
  std::chrono::milliseconds patience{60000};
  const std::atomic<bool>* given_up = nullptr;  // set from elsewhere: the command is ended
};

// In a session of its own: ctrl-C is for the engine, a submission is not to be torn apart.
CommandResult run_command(const CommandSpec& spec);

// "sbatch: ...": what a command that failed said.
std::string error_text(const CommandResult& result, const std::string& command);

}  // namespace tally
