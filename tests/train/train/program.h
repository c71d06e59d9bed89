// Runs tally-train as a person does: a process, its output, its exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

struct Ended {
  int code = -1;  // exit code, or 128 + the signal
  std::string out, err;
};

// `on_output` sees all of stdout so far whenever more has come, and may signal the process.
using OnOutput = std::function<void(const std::string& out, int pid)>;

// Runs build/bin/tally-train with the words of `arguments` (white space separates). `shell_prefix`,
// as "ulimit -v 1000;", is run before it by a shell that then becomes the program; `launcher`, as
// "mpirun -n 2", starts it.
Ended tally_train(const std::string& arguments, const std::string& shell_prefix = "",
                  const OnOutput& on_output = {}, const std::string& launcher = "");
