// The exit codes of all commands. `tally help exit-codes` prints this table.
#pragma once

#include <string>
#include <vector>

#include "engine/run/input.h"
#include "engine/run/settings.h"

namespace tally {

constexpr int kFine = 0;
constexpr int kFailed = 1;
constexpr int kBadInput = 2;
// A reference is missed, or its value is missing. Takes precedence over kFailed.
constexpr int kReferenceMissed = 5;

// Returns "0 all went well, 1 something failed, ...".
std::string exit_codes_in_short();
// Returns one line for each exit code, with its causes.
std::string exit_codes_in_full();

// The commands of `tally`, one function each. The arguments are already parsed. Every function
// returns the exit code.

struct RunDirectory;

// Selects runs by a directory and ids. The directory is the folder of runs, one run's folder, or an
// input file, which stands for its outpath. Ids are "3", "-1" (the last), "last" or "all". Without
// ids, the newest run is selected.
struct RunsArgs {
  std::string directory = ".";
  std::vector<std::string> ids;
};

struct RunArgs {
  std::vector<std::string> files;
  InputArgs input;
  std::vector<std::string> ids;
  std::string outpath, comment;
  bool with_comment = false;  // an empty one takes the place of the file's, too
  bool dry_run = false;
  int script = -1;             // with dry_run: print the generated files of this workpackage
  bool all = false;            // with dry_run: list every workpackage
  std::string junit;           // a file for a report in JUnit's XML
  double max_node_hours = -1;  // a run that may need more is refused; negative: no limit
};
int run_command(const Settings& settings, const RunArgs& args);

struct FleetArgs {
  RunArgs run;
  std::string nodes, partition;  // as Slurm writes them; with `local` devices, by comma
  bool idle = false, local = false, accept = false;
  std::string baseline, groups;  // files; empty: none
  double budget = -1;            // node-hours; negative: no limit
};
// Exit code 5 where a machine or a link is slow or wrong.
int fleet_command(const Settings& settings, const FleetArgs& args);

struct ContinueArgs {
  RunsArgs runs;
  bool failed = false;  // what failed is done again
  double budget = -1;   // node-hours of a fleet; negative: as before
};
int continue_command(const Settings& settings, const ContinueArgs& args);
// Shows a run that another engine executes until that engine has ended. Then acts as
// continue_command().
int watch_command(const Settings& settings, const RunsArgs& args);

struct ResultArgs {
  RunsArgs runs;
  InputArgs input;     // for `update`, or the input file that `logs` belong to
  std::string update;  // -u: reads patterns, analysers and results from this file
  std::vector<std::string> only, select, exclude;
  std::string style;
  bool reverse = false;
  int last = 0;  // -n: only the last N runs
  // --logs: files written by jobs that were submitted by hand, or the folders of these files.
  // `runs.directory` is then the input file, and no run is looked for.
  std::vector<std::string> logs;
};
int analyse_command(const Settings& settings, const ResultArgs& args);
int result_command(const Settings& settings, const ResultArgs& args);

struct PlotArgs {
  std::vector<std::string> sources;  // CSV files; or folders of runs, runs' folders, input files
  std::vector<std::string> ids;
  std::string out;    // FILE.svg or FILE.png
  std::string table;  // empty: the first one with the columns
  std::string kind = "line", x, y, series, facet, error = "none", ideal = "none", log = "none";
  std::string title;
  std::string where;  // which rows are drawn; empty: all
};
struct ReportArgs {
  std::vector<std::string> runs;  // folders of runs, runs' folders, input files
  std::vector<std::string> ids;
  std::string out, title;  // empty `out`: standard output
  std::string format;      // html, md, json, junit, csv; empty: what the ending of `out` says
};
int report_command(const Settings& settings, const ReportArgs& args);
int plot_command(const Settings& settings, const PlotArgs& args);
struct CompareArgs {
  std::vector<std::string> runs;  // folders; one, with `by` or for the null comparison, or two
  std::vector<std::string> ids;   // of runs in the one folder that `runs` names, or here
  std::string by, metric, better, style;
  std::string threshold = "2%";
  bool null_comparison = false;
  bool why = false;  // the bars of two steps, and no columns
};
// Exit code 5 where a row regressed, or where a null comparison found a difference.
int compare_command(const Settings& settings, const CompareArgs& args);
int compare_why_command(const Settings& settings, const CompareArgs& args);

struct ArchiveArgs {
  std::vector<std::string> runs;  // folders of runs, runs' folders, input files
  std::vector<std::string> ids;
  std::string out, sign;  // sign: an SSH key; empty: it is not signed
};
int archive_command(const Settings& settings, const ArchiveArgs& args);
struct VerifyArgs {
  std::string file, signature, signers;
  bool compute = false;  // interpreters compute the tables' values again
  bool replay = false;   // a part of it is run again
  std::string share = "3%", threshold = "5%";
};
// Exit code 1 where something has changed or does not follow, 2 where the file is no archive, 5
// where a replay does not agree.
int verify_command(const Settings& settings, const VerifyArgs& args);

struct HistoryArgs {
  std::string directory = ".";  // folder of runs, a run's folder, or an input file
  std::string metric, style;
};
int history_command(const Settings& settings, const HistoryArgs& args);

struct MeterArgs {
  std::vector<std::string> command;
  std::string json;  // a file for the numbers; empty: none
};
// Returns the command's exit code.
int meter_command(const Settings& settings, const MeterArgs& args);

struct NewArgs {
  std::string name;                  // NAME.yaml is written, and must not be there yet
  std::vector<std::string> command;  // run once, for what it prints; empty: an example is written
};
int new_command(const Settings& settings, const NewArgs& args);

// Exit code 1 where no run can be kept in this folder.
int doctor_command();

struct ReferenceArgs {
  bool json_schema = false;
  bool update = false;  // write measured values into an input file's references
  RunsArgs runs;        // whose values
  std::string file;     // empty: the run's own input file
  std::string tolerance = "5%";
};
int reference_command(const Settings& settings, const ReferenceArgs& args);

struct PlatformArgs {
  std::string action;     // detect
  std::string scheduler;  // empty: the one that is here
  std::string file;       // empty: standard output
};
int platform_command(const Settings& settings, const PlatformArgs& args);

struct InfoArgs {
  RunsArgs runs;
  std::vector<std::string> steps;
  std::vector<std::string> workpackages;
  bool with_steps = false;       // -s without names: all steps
  bool parametrization = false;  // -p
  bool csv = false;              // -c
  std::string separator = ",";
};
int info_command(const Settings& settings, const InfoArgs& args);
int status_command(const Settings& settings, const RunsArgs& args);

struct LogArgs {
  RunsArgs runs;
  std::vector<std::string> commands;
};
int log_command(const Settings& settings, const LogArgs& args);

struct OutputArgs {
  RunsArgs runs;
  std::vector<std::string> steps, workpackages;
  bool display = false;
  std::string only;  // stdout, stderr
};
int output_command(const Settings& settings, const OutputArgs& args);

struct CommentArgs {
  RunsArgs runs;
  std::string comment;
  bool append = false;
};
int comment_command(const Settings& settings, const CommentArgs& args);

struct RemoveArgs {
  RunsArgs runs;
  std::vector<std::string> workpackages;
  bool force = false;
};
int remove_command(const Settings& settings, const RemoveArgs& args);

struct ValidateArgs {
  std::vector<std::string> files;
  std::vector<std::string> ids;  // for `tag`: runs, if a folder of runs is named
  InputArgs input;
  std::string format = "text";  // of `validate`
};
int validate_command(const Settings& settings, const ValidateArgs& args);
int tag_command(const Settings& settings, const ValidateArgs& args);
// Prints the files in the long form, with what they include.
int show_command(const Settings& settings, const ValidateArgs& args);

struct ScriptArgs {
  std::vector<std::string> files;
  InputArgs input;
  std::string out;
};
int script_command(const Settings& settings, const ScriptArgs& args);

}  // namespace tally
