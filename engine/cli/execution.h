// Executes a run, new or continued, and reports how it ended and what it measured.
#pragma once

#include <functional>
#include <vector>

#include "engine/cli/commands.h"
#include "engine/cli/junit_cases.h"
#include "engine/cli/show_results.h"
#include "engine/run/run.h"

namespace tally {

struct Executed {
  int code = 0;              // the exit code
  bool interrupted = false;  // somebody asked the command to end: no other run begins
};

// Executes what is left of the run, prints its summary, and shows its results if they are asked
// for. Prints errors. `junit` gets the run's suite, if it is not null.
Executed execute_run(const Settings& settings, Run& run, std::vector<JunitSuite>* junit);

// Executes what is left of the run and prints how it ended, but not its results. Returns an exit
// code.
int execute_part(const Settings& settings, Run& run);

// Waits until the engine that holds a run has ended. False: none holds it.
using WaitForHolder = std::function<bool(const RunDirectory& directory)>;
// Goes on with the runs. `wait_for_holder` is called for a run that is in use. Null: such a run is
// an error.
int continue_runs(const Settings& settings, const ContinueArgs& args,
                  const WaitForHolder& wait_for_holder);

// A benchmark without any workpackage is a mistake: its table is empty, and no reference can fail.
// JUBE's files end as JUBE does, with code 0. Returns the exit code. `dry`: of a dry run.
int report_nothing(const Benchmark& benchmark, bool dry);

// Runs the command of each missed reference of a run's tables, once for each row, in the folder of
// the row's workpackage. The environment has TALLY_REFERENCE (what was missed) and TALLY_TABLE. The
// output is appended to result/on_fail.log. A command that fails, or takes longer than a minute, is
// reported and changes nothing else.
void run_on_fail(const Settings& settings, const Run& run,
                 const std::vector<RenderedResult>& tables);

}  // namespace tally
