// What every command that takes an input file does before anything starts: load, check, expand,
// estimate. `validate`, `run -n`, `run` and `script` refuse the same files with the same words
// because they all go through here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/cli/commands.h"
#include "engine/cli/input.h"
#include "engine/expand/evaluator.h"
#include "engine/plan/prepared.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct PrepareOptions {
  InputArgs input;
  // Warnings are errors.
  bool strict = false;
  // `validate`: expressions that are computed while steps are made are read, too.
  bool validate = false;
  // The plan is shown or written: it is made even where that runs the commands of shell and perl
  // parameters. Otherwise these are run for the plan only where jobs are submitted.
  bool needs_plan = false;
  std::optional<double> max_node_hours;
};

// A file that may be run.
struct PreparedFile {
  std::string path;
  std::unique_ptr<Input> input;
  std::unique_ptr<Evaluator> evaluator;
  size_t warnings = 0;
  // "jsc (slurm)": the file describes a platform and no benchmark, as only `validate` takes it. The
  // workflow is then one that has a job there.
  std::string platform;
};

// Reads and checks `path` and prints all that is wrong with it. Null when nothing can be run.
std::unique_ptr<PreparedFile> prepare_file(const Invocation& invocation, const std::string& path,
                                           const PrepareOptions& options);

// Expands a benchmark of a prepared file, estimates its jobs and checks what only values can tell.
// Prints all that is wrong. Null when it would not be run. `info`: of the run that it is for, or of
// one that might be.
std::unique_ptr<PreparedBenchmark> prepare_benchmark(const Invocation& invocation,
                                                     const PreparedFile& file,
                                                     const Benchmark& benchmark,
                                                     const RunInfo& info,
                                                     const PrepareOptions& options);

// Says why a run is not to be started that may take more than its platform, or the command line,
// allows. False: it may be.
bool refuse(const Invocation& invocation, const PreparedBenchmark& prepared,
            std::optional<double> max_node_hours, const char* consequence);

// /bin/sh, or $JUBE_EXEC_SHELL.
std::string shell_of_commands();
// For the values of a run. Commands of a workflow with steps of Tally's own kinds find the programs
// that lie beside tally.
std::unique_ptr<Evaluator> make_run_evaluator(const Invocation& invocation,
                                              const Workflow& workflow);

}  // namespace tally
