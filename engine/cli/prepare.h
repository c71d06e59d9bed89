// The first act of commands: reads an input file or opens a run, and prints what is wrong with it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/plan/planned_run.h"
#include "engine/run/input.h"
#include "engine/run/run.h"
#include "engine/run/settings.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Reads and checks `path`. Problems have been printed when this returns; see Input::workflow.
std::shared_ptr<Input> load_input(const Settings& settings, const std::string& path,
                                  const InputArgs& args);
// Reads and checks a text that stands for the file `name`.
std::shared_ptr<Input> load_input_text(const Settings& settings, const std::string& name,
                                       const std::string& text, const InputArgs& args);

// Opens a run with the input that it was started with. Null, after printing why, if that cannot be
// read.
std::unique_ptr<Run> open_run(const Settings& settings, const RunDirectory& directory,
                              Run::Access access);
// Opens a run for its results, which are made with the definitions that the run keeps. `update`: an
// input file whose patterns, analysers and results replace them. Empty: none.
std::unique_ptr<Run> open_results(const Settings& settings, const RunDirectory& directory,
                                  const std::string& update = {},
                                  const InputArgs& update_input = {});
// Reads the definitions of an open run's results. Returns false, after printing why, if they cannot
// be read.
bool read_definitions(const Settings& settings, Run* run);

// Checks the patterns, references and expressions of a file from which results are made and nothing
// runs, as they are checked before a run, and prints what is wrong. JUBE's files are taken as they
// are.
bool can_make_results(const Settings& settings, const Benchmark& benchmark, const Sources& sources);

// Whether output to this file descriptor is coloured.
bool in_color(const Settings& settings, int fd);
// Prints diagnostics to standard error, or adds them to settings.problems, and returns their
// number.
size_t print_diagnostics(const Settings& settings, const Diagnostics& diagnostics,
                         const Sources& sources);
// Prints "tally: error: ..." to standard error, in colour on a terminal; or adds it to
// settings.problems.
void print_error(const Settings& settings, const std::string& message,
                 const std::string& hint = {});
void print_error(const Settings& settings, const Status& status);
// Prints the error of the status, if it has one. Returns whether it has.
bool print_if_error(const Settings& settings, const Status& status);

// The steps that every command with an input file does first: load, check, expand, estimate.
// `validate`, `run -n`, `run` and `script` refuse the same files with the same messages, because
// they all use these functions.
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
