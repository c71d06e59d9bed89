// The commands of `tally`, one function each; arguments already parsed. Every function returns the
// exit code: see exit_codes.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/cli/exit_codes.h"
#include "engine/workflow/step_kinds.h"

namespace tally {

// What holds for every command.
struct Invocation {
  std::string program = "tally";  // as it was called, for hints
  bool as_jube = false;           // called by the name jube: its exit codes, tables on -r only
  // 1: a line for each workpackage that ended, every workpackage of a plan; 2: what commands print,
  // too.
  int verbose = 0;
  bool quiet = false;  // tables and failures only
  bool strict = false;
  // automatic: where the output is a terminal and NO_COLOR is not set.
  enum class Color { automatic, always, never } color = Color::automatic;
  // The folder of the program, in which tally-train lies, too; empty: not known.
  std::string programs;
  // What the steps of workflows can be.
  const StepKinds* kinds = &plain_kinds();
};

// How an input file is read.
struct InputArgs {
  std::vector<std::string> tags;
  std::vector<std::string> only, exclude;
  std::vector<std::string> include_path;
  std::vector<std::string> set;  // name=value
};

// Which runs: a directory (the folder of runs, one run's folder, or an input file, which stands for
// its outpath) and ids ("3", "-1" the last, "last", "all"); none: the newest run.
struct RunsArgs {
  std::string directory = ".";
  std::vector<std::string> ids;
};

struct RunArgs {
  std::vector<std::string> files;
  InputArgs input;
  std::vector<std::string> ids;
  std::string outpath, comment;
  int jobs = 1;
  bool dry_run = false;
  int script = -1;     // with dry_run: print the generated files of this workpackage
  bool all = false;    // with dry_run: list every workpackage
  bool fresh = false;  // setup and build steps take nothing over from earlier runs
  bool exit_on_error = false, hide_animation = false;
  bool analyse = false, result = false;
  bool no_wait = false;
  double max_node_hours = -1;  // a run that may take more is refused; negative: no limit
};
int run_command(const Invocation& invocation, const RunArgs& args);

struct ContinueArgs {
  RunsArgs runs;
  int jobs = 1;
  bool exit_on_error = false, hide_animation = false;
  bool analyse = false, result = false;
  bool no_wait = false;
};
int continue_command(const Invocation& invocation, const ContinueArgs& args);
// Shows a run that another engine is at until that has ended; then as continue_command().
int watch_command(const Invocation& invocation, const ContinueArgs& args);

struct ResultArgs {
  RunsArgs runs;
  InputArgs input;     // of `update`, or of the input file that `logs` belong to
  std::string update;  // -u: take patterns, analysers and results from this file
  std::vector<std::string> only, select, exclude;
  std::string style;
  bool analyse = false;  // JUBE's -a; analysis is never stale here
  bool reverse = false;
  int last = 0;  // -n: only the last N runs
  // --logs: files written by jobs that were submitted by hand, or the folders they lie in; then
  // `runs.directory` is the input file, and no run is looked for.
  std::vector<std::string> logs;
};
int analyse_command(const Invocation& invocation, const ResultArgs& args);
int result_command(const Invocation& invocation, const ResultArgs& args);

struct InfoArgs {
  RunsArgs runs;
  std::vector<std::string> steps;
  std::vector<std::string> workpackages;
  bool with_steps = false;       // -s without names: all steps
  bool parametrization = false;  // -p
  bool csv = false;              // -c
  std::string separator = ",";
};
int info_command(const Invocation& invocation, const InfoArgs& args);
int status_command(const Invocation& invocation, const RunsArgs& args);

struct LogArgs {
  RunsArgs runs;
  std::vector<std::string> commands;
};
int log_command(const Invocation& invocation, const LogArgs& args);

struct OutputArgs {
  RunsArgs runs;
  std::vector<std::string> steps, workpackages;
  bool display = false;
  std::string only;  // stdout, stderr
};
int output_command(const Invocation& invocation, const OutputArgs& args);

struct CommentArgs {
  RunsArgs runs;
  std::string comment;
  bool append = false;
};
int comment_command(const Invocation& invocation, const CommentArgs& args);

struct RemoveArgs {
  RunsArgs runs;
  std::vector<std::string> workpackages;
  bool force = false;
};
int remove_command(const Invocation& invocation, const RemoveArgs& args);

struct ValidateArgs {
  std::vector<std::string> files;
  std::vector<std::string> ids;  // of `tag`: runs, where a folder of runs is named
  InputArgs input;
};
int validate_command(const Invocation& invocation, const ValidateArgs& args);
int tag_command(const Invocation& invocation, const ValidateArgs& args);

struct ScriptArgs {
  std::vector<std::string> files;
  InputArgs input;
  std::string out;
};
int script_command(const Invocation& invocation, const ScriptArgs& args);

}  // namespace tally
