// A command of the scheduler's, run to its end for its answer.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

namespace tally {

struct Answer {
  int status = -1;  // exit code; -1: could not be run, took too long or was given up
  std::string out, err;
};

struct Question {
  std::vector<std::string> words;
  std::string directory;                 // empty: the engine's
  std::vector<std::string> environment;  // NAME=value, complete
  // When munge or the controller is away, Slurm's commands hang.
  std::chrono::milliseconds patience{60000};
  const std::atomic<bool>* given_up = nullptr;  // set from elsewhere: the command is ended
};

// In a session of its own: ctrl-C is for the engine, a submission is not to be torn apart.
Answer ask(const Question& question);

// "sbatch: ...": what a command that failed said.
std::string words_of(const Answer& answer, const std::string& command);

}  // namespace tally
