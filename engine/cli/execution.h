// Executes a run, new or continued, and reports how it ended and what it measured.
#pragma once

#include <memory>
#include <vector>

#include "engine/cli/input.h"
#include "engine/cli/junit.h"
#include "engine/cli/runs.h"
#include "engine/expand/evaluator.h"
#include "engine/journal/journal.h"
#include "engine/workflow/workflow.h"

namespace tally {

// What `run` and `continue` ask for.
struct Execution {
  int jobs = 1;
  bool exit_on_error = false, hide_animation = false, no_wait = false;
  bool analyse = false, result = false;
  bool fresh = false;
  std::vector<JunitSuite>* junit = nullptr;  // gets the run's, if given
};

// Executes what is left of the run in `directory`, prints its summary, and shows its results if they
// are asked for. Prints errors, and returns the exit code.
int execute_run(const Invocation& invocation, Input& input, const Benchmark& benchmark,
                const RunDirectory& directory, std::unique_ptr<Journal> journal,
                const Execution& execution, Evaluator& evaluator);

// A benchmark without any workpackage is a mistake: its table is empty, and no reference can fail.
// JUBE's files end as JUBE does, with code 0. Returns the exit code. `dry`: of a dry run.
int report_nothing(const Benchmark& benchmark, bool dry);

}  // namespace tally
