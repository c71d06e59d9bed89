// Runs what only another language can: python, perl and shell values. A seam: tests use a fake.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct Evaluation {
  bool ok = false;
  std::string value;  // Python: str() of the result; shell: standard output as it came
  std::string error;  // the interpreter's own last line
};

// Evaluates many expressions of one mode at once, in order; one result each. Python expressions run
// in one long-lived python3 process, started at the first use. Thread-safe for distinct objects
// only.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual std::vector<Evaluation> evaluate(Mode mode,
                                           const std::vector<std::string>& expressions) = 0;
  Evaluation evaluate_one(Mode mode, const std::string& expression) {
    return evaluate(mode, {expression}).front();
  }
};

// The real one. `directory`: where shell and perl values run (JUBE: where it was started).
// `shell`: /bin/sh or $JUBE_EXEC_SHELL. `programs`: a folder that these find behind their PATH;
// empty: none.
std::unique_ptr<Evaluator> make_evaluator(std::string directory, std::string shell = "/bin/sh",
                                          std::string programs = {});

}  // namespace tally
