// Evaluates python, perl and shell values in their own interpreters. The class is an interface, so
// that tests can use a fake.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct Evaluation {
  bool ok = false;
  std::string value;     // Python: str() of the result; shell: standard output as it came
  std::string error;     // the last line of the interpreter's error message
  bool unknown = false;  // not computed, see Evaluator::computes(); `error` is then empty
  bool asked = true;     // false: no interpreter could be started; `error` says why
};

// Evaluates many expressions of one mode at once and returns one result each, in order. Python
// expressions run in one long-lived python3 process, which starts at the first use. Different
// objects may be used in different threads; one object may not be shared between threads.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual std::vector<Evaluation> evaluate(Mode mode,
                                           const std::vector<std::string>& expressions) = 0;
  Evaluation evaluate_one(Mode mode, const std::string& expression) {
    return evaluate(mode, {expression}).front();
  }
  // Parses Python expressions and evaluates nothing. `error` is Python's.
  virtual std::vector<Evaluation> parse(const std::vector<std::string>& expressions) = 0;
  // Whether values are computed. If not, evaluate() says of a value that it is unknown, unless it
  // cannot be right.
  virtual bool computes() const { return true; }
};

// Makes the evaluator that runs real interpreters. Shell and perl values run in `directory` (JUBE
// uses the directory where it was started). `shell` is /bin/sh or $JUBE_EXEC_SHELL. `programs` is a
// folder that is appended to the PATH of shell and perl values; empty means none.
std::unique_ptr<Evaluator> make_evaluator(std::string directory, std::string shell = "/bin/sh",
                                          const std::string& programs = {});

// Makes an evaluator that executes and evaluates nothing, for files of strangers. Python, without
// the user's settings and the current directory, parses expressions. It reports those that it
// cannot read, and those that certainly name what does not exist.
std::unique_ptr<Evaluator> make_reading_evaluator();

// Makes an evaluator that executes nothing. It throws std::system_error, which names the value: a
// command must not go on without it.
std::unique_ptr<Evaluator> make_refusing_evaluator();

}  // namespace tally
