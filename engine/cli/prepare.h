// The steps that every command with an input file does first: load, check, expand, estimate.
// `validate`, `run -n`, `run` and `script` refuse the same files with the same messages, because
// they all use these functions.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/base/diagnostics.h"
#include "engine/cli/input.h"
#include "engine/expand/evaluator.h"
#include "engine/plan/planned_run.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct PrepareOptions {
  InputArgs input;
  // For `validate`: nothing is executed or evaluated. The expressions that are computed while steps
  // are made are parsed, too.
  bool validate = false;
  // The plan is shown or written, so it is made even if that runs the commands of shell and perl
  // parameters. Otherwise these commands run for the plan only if jobs are submitted.
  bool needs_plan = false;
};

// A file that passed the checks and may be run.
struct PreparedFile {
  std::shared_ptr<Input> input;
  std::shared_ptr<Evaluator> evaluator;
  size_t warnings = 0;
  // Text such as "jsc (slurm)", if the file describes a platform and no benchmark. Only `validate`
  // accepts such a file. The workflow is then one that has a job on the platform.
  std::string platform;
};

// Reads and checks `path` and prints all problems. Null when nothing can be run.
std::unique_ptr<PreparedFile> prepare_file(const Settings& settings, const std::string& path,
                                           const PrepareOptions& options);

// Expands a benchmark of a prepared file, estimates its jobs, and checks what depends on values.
// Prints all problems. Null when a run would be refused. `info`: the run that it is for, or a
// possible run.
std::unique_ptr<PlannedRun> plan_run(const Settings& settings, const PreparedFile& file,
                                     const Benchmark& benchmark, RunInfo info,
                                     const PrepareOptions& options);

// Returns true when a run must not start, because it may need more than its platform or the command
// line allows. Prints the reason.
bool refuse(const Settings& settings, const PlannedRun& planned,
            std::optional<double> max_node_hours, const char* consequence);

// Prints the plan's jobs, nodes x time and node-hours. Returns false, after printing why, when the
// run must not start. Prints nothing for a benchmark that submits no jobs.
bool announce_jobs(const Settings& settings, const PlannedRun& planned,
                   std::optional<double> max_node_hours);

}  // namespace tally
