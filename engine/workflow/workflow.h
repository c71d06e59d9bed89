// A checked workflow: plain values with marks. check/ makes it from a Document after tags were
// applied. Everything after check/ uses these types and never sees YAML or XML. Values are as the
// user wrote them: parameters are not substituted yet.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/python/value.h"
#include "engine/statistics/fleet.h"
#include "engine/statistics/named.h"
#include "engine/workflow/rules.h"
#include "engine/workflow/step_kinds.h"

namespace tally {

struct SchedulerTable;

enum class Mode { text, python, perl, shell, env, tag };
enum class UpdateMode { never, use, step, cycle, always };
enum class Duplicate { none, replace, concat, error };
// The owner of a parameter where two of a step have one name (Tally only). any: two are an error,
// as in JUBE's files. user: of a set with another name than those of platforms. platform: of a set
// that a platform's file defines.
enum class Owner { any, user, platform };

struct Parameter {
  Text name;
  Text value;
  Mode mode = Mode::text;
  ValueType type = ValueType::string;
  std::string separator = ",";  // "": never split
  std::string unit;
  Text allowed;  // which values it may have; see allowed.h (Tally only)
  bool exported = false;
  UpdateMode update = UpdateMode::never;
  Duplicate duplicate = Duplicate::none;
  Owner owner = Owner::any;
};

// Whether it has the name of a secret, and a value that is not of the workflow's text or that
// commands get in their environment; or the value of a variable of such a name.
bool is_secret(const Parameter& parameter);
// "NAME=value" with the name of the secret. Empty: it is none.
std::string secret_entry(const Parameter& parameter, const std::string& value);

struct ParameterSet {
  Text name;
  std::vector<Parameter> parameters;  // one per name; duplicates are already resolved by their mode
  // Groups of parameters that advance together instead of being crossed. Their lists must have
  // equal lengths. (Tally only.)
  std::vector<std::vector<Text>> zip;
  // Python expressions. A point for which one is false is excluded. (Tally only.)
  std::vector<Text> where;
};

struct Substitution {
  Text source;
  Text dest;
  bool regex = false;
};
struct IoFile {
  Text in;
  Text out;
  bool append = false;
};
struct SubstituteSet {
  Text name;
  std::vector<IoFile> files;
  std::vector<Substitution> substitutions;
};

struct FileCopy {  // copy or link
  bool link = false;
  Text source;  // comma-separated unless `separator` differs; may hold glob patterns
  Text target;  // names, as many as sources; or empty
  std::string separator = ",";
  std::string source_dir, target_dir;
  bool internal = false;  // rel_path_ref="internal": relative to the work directory
  // The folder of the file that defines this entry, with the benchmark's file_path_ref applied.
  std::string file_path;
  std::string file_path_ref;  // the entry's own: sources are looked up there, relative to file_path
  Text active{"true", {}};
};
struct Prepare {
  Text command;
  std::string stdout_file, stderr_file, work_dir;
  Text active{"true", {}};
};
struct FileSet {
  Text name;
  std::vector<std::variant<FileCopy, Prepare>> entries;
};

enum class PatternMode { pattern, text, python, perl, shell };
struct Pattern {
  Text name;
  Text value;
  PatternMode mode = PatternMode::pattern;
  ValueType type = ValueType::string;
  std::string unit;
  std::optional<std::string> default_value;
  bool dotall = false;
  // The pattern that has the seconds over which the value was measured. Empty: not stated.
  Text measured_over;
};
struct PatternSet {
  Text name;
  std::vector<Pattern> patterns;
};

struct Operation {  // one `do`
  Text command;
  Text active{"true", {}};
  Text stdout_file, stderr_file;  // names in the step's work directory; empty: stdout, stderr
  Text work_dir;
  Text done_file, error_file, break_file;
  bool shared = false;
};

// The kinds of step. plain is exactly JUBE's step; the other four are Tally's own.
enum class StepKind { plain, setup, build, run, result };
// Whether work of this kind is done once for equal workpackages, and kept for later runs.
inline bool reuses_work(StepKind kind) {
  return kind == StepKind::setup || kind == StepKind::build;
}

// The resources that a run step requests from its platform. Texts may hold $parameters.
struct Resources {
  Text nodes, tasks_per_node, cpus_per_task, gpus_per_node, time, partition, account, memory, hint;
  std::vector<std::pair<Text, Text>> extra;  // further scheduler options by name
  bool any = false;
};
struct ResourceKey {
  const char* key;        // of `resources`
  const char* parameter;  // of the platform, which the key replaces
  Text Resources::*text;
};
// Every key that has one value.
std::span<const ResourceKey> resource_keys();

// How a run step's program is started in its container image. Empty values are the platform's.
struct Container {
  Text runtime, image, gpus, bind, args;
  std::vector<std::pair<Text, Text>> env;
};

// How a run step's workpackages share jobs.
struct PackKeys {
  Text kind;  // array, steps; empty: one job per workpackage
  Text size, at_once;
};

// A step's `repeat: {min, max, warmup, until}` (Tally only).
struct RepeatUntil {
  int warmup = 0;         // first repeats whose values do not count
  int min = 0;            // repeats after the warm-ups before the precision is looked at
  Text metric;            // a pattern; empty: all repeats run
  double half_width = 0;  // of the median's 95 % interval, as a fraction of the median
};

struct Step {
  Text name;
  StepKind kind = StepKind::plain;
  std::vector<Text> depend;
  std::vector<Text> use;  // set names in file order, may hold $parameters
  std::vector<Operation> operations;
  Text work_dir, suffix;
  Text active{"true", {}};
  std::string shared;     // name of the link to the shared folder; empty: none
  bool exported = false;  // export="true": children inherit the final environment
  Text max_async{"0", {}};
  Text iterations{"1", {}};
  Text cycles{"1", {}};
  Text procs{"1", {}};
  Text do_log_file;
  // Keys of Tally's own.
  Resources resources;
  Container container;
  PackKeys pack;
  Text launch;  // run: the program's command line
  // The further components of a heterogeneous job: this step with the resources and launch of each.
  // The first component is the step itself. The mark of a component's name is its place.
  std::vector<Step> components;
  std::vector<std::pair<Text, Text>> env;  // set (to a value) in the step's environment
  std::vector<Text> env_unset;
  std::vector<Text> expect;  // outcomes that count as results: oom, timeout
  Text timeout, retry, gpu_slots;
  Text repeat;  // how often, warm-ups included; the most with `until`
  RepeatUntil until;
  // The scheduler that takes its jobs, if a table describes it. Null: Slurm, or none.
  std::shared_ptr<const SchedulerTable> scheduler;
  std::string platform;  // its platform as written, without folder and ending; empty: none
  std::vector<Text> modules;
  std::vector<Text> inputs;  // setup, build: files and folders whose content the result depends on
  bool reuse = true;         // setup, build: equal work is done only once
  bool quiet_check = true;   // its rows are marked when something else used the machine
  // The additions of the step's kind. Never null; not owned by the step.
  const StepKinds* kinds = &plain_kinds();
};

// A step of kind: result has none: it is done once, after the tables.
inline bool has_workpackages(const Step& step) {
  return step.kind != StepKind::result;
}

struct AnalyseFile {
  Text path;              // comma-separated globs, relative to the work directory
  std::vector<Text> use;  // pattern sets for this file only
};
struct Analyse {
  Text step;
  std::vector<AnalyseFile> files;
};
struct Analyser {
  Text name;
  bool reduce = true;
  std::vector<Text> use;
  std::vector<Text> rows;  // patterns whose values tell a workpackage's rows apart (Tally only)
  std::vector<Analyse> analyse;
};

// How sure the number is that a column shows of the repeats of a point (Tally only). ci: the 95 % confidence interval of the median or the mean.
enum class Uncertainty { none, ci, mad, range };
enum class Better { unknown, higher, lower };

struct Column {
  Text name;  // a parameter or a pattern
  std::string title, format, colw;
  bool empty_title = false;  // JUBE's files: title="" makes the heading empty
  bool null_value_set = false;
  std::string null_value;
  bool primary_key = false;  // for a database
  // A derived column (Tally only).
  Text expression;                                 // Python, over the row's values
  std::vector<std::pair<Text, Text>> relative_to;  // baseline row: name -> value
  // The number that it shows of the repeats of a point. Null: the first repeat's value.
  const statistics::NamedStatistic* statistic = nullptr;
  Uncertainty uncertainty = Uncertainty::none;
  Better better = Better::unknown;

  // Whether its values are computed, not read: by an expression, or against a baseline row.
  bool computed() const { return !expression.value.empty() || !relative_to.empty(); }
  // The column's heading: its title, or else its name.
  const std::string& column_title() const { return title.empty() ? name.value : title; }
};
// The column that shows how a row's workpackage ended, unless a parameter or pattern has this name.
constexpr const char* kStatusColumn = "status";

// The effect of a missed reference. warn: it is printed. expect_fail: it must be missed.
enum class ReferenceAction { fail, warn, expect_fail };
struct Reference {  // Tally only: expected value of a column, checked for each row
  Text column, condition, note;
  Text where;
  std::string of;  // the statistic of the repeats, as a suffix without underscore; empty: the value
  Text platform;   // only where a step runs on the platform of this name; empty: everywhere
  Text on_fail;    // a command that collects the cause
  ReferenceAction action = ReferenceAction::fail;
  int column_index = -1;  // the column that contains it; -1: it belongs to the table
};
enum class TableStyle { csv, pretty, aligned };
struct Table {
  Text name;
  TableStyle style = TableStyle::csv;
  std::string separator = ",";
  std::vector<std::string> sort;
  Text filter;
  bool transpose = false;
  std::vector<Column> columns;
  std::vector<Reference> references;
};
struct Database {
  Text name;
  Text file;
  std::vector<std::string> primary_keys;  // columns of the database, by title or else by name
  Text filter;
  std::vector<Column> keys;
};
struct Syslog {
  Text name;
  std::string address, host, port, format;
  std::vector<std::string> sort;
  Text filter;
  std::vector<Column> keys;
};
// The drawing that is made of a table (Tally only).
enum class ChartKind { bar, line, scatter, curve };
// The line to compare with, through the best of the first points of the series.
enum class ChartIdeal { none, linear, inverse, constant };
// Numbers that somebody published, drawn beside a table's rows: no result, and no verdict.
struct PublishedPoint {
  std::string x;
  double y = 0;
};
struct PublishedSeries {
  Text name;          // in the legend; it says which machine this is
  std::string facet;  // the panel's value; empty: in each panel
  std::vector<PublishedPoint> points;
};
struct Chart {
  Text name;
  Text table;  // the table whose rows are drawn
  ChartKind kind = ChartKind::line;
  Text x, y;
  Text series, facet;                     // empty: one series, one panel
  Uncertainty error = Uncertainty::none;  // the interval at each point
  Mark error_mark;
  ChartIdeal ideal = ChartIdeal::none;
  bool log_x = false, log_y = false;
  std::string title;
  std::vector<PublishedSeries> published;
};
struct Result {
  Text result_dir;
  std::vector<Text> use;  // names of analysers
  std::vector<std::variant<Table, Database, Syslog>> outputs;
  std::vector<Chart> charts;
};

// The tables among its outputs.
std::vector<const Table*> tables_of(const Result& result);

// The table that a chart draws: the one it names, or the only one of its result. Null: none.
const Table* drawn_table(const Result& result, const Chart& chart);

// The section by which `tally fleet` tests many equal machines (docs/fleet.md). The parameter `node`
// has one machine at a time, `pair` the two of a link.
constexpr const char* kFleetNode = "node";
constexpr const char* kFleetPair = "pair";
struct Fleet {
  bool any = false;  // the benchmark has the section
  Mark mark;
  statistics::FleetRule rule;
  int first = 3;                 // repeats of a machine before it is first judged
  std::vector<Text> same, show;  // patterns
  Text part;                     // a pattern that tells the parts of a machine apart, as its GPUs
  // The values that `tally fleet` gives to a run beside the parameters: `--set fleet.NAME=VALUE`.
  std::map<std::string, std::string> given;

  // The names of all its patterns and parameters.
  std::vector<std::string> names() const;
  // Whether the run is one of `tally fleet`. `tally run` does all repeats.
  bool is_tested() const { return any && !given.empty(); }
  // Empty: it was not given.
  const std::string& find_given(const std::string& name) const;
};

struct Benchmark {
  Text name;
  Text outpath;
  std::string comment;
  std::string file_path;  // directory of the input file; relative paths start here
  std::string input_file;
  Rules rules = Rules::tally();
  std::map<std::string, ParameterSet> parameter_sets;
  std::map<std::string, SubstituteSet> substitute_sets;
  std::map<std::string, FileSet> file_sets;
  std::map<std::string, PatternSet> pattern_sets;
  std::vector<Step> steps;          // file order
  std::vector<Analyser> analysers;  // file order
  std::vector<Result> results;
  Fleet fleet;
  // The benchmark as a file describes it that defines a run's results anew (-u). A reference may be
  // for points that only the run or only the file has. Null: there is no such file.
  std::shared_ptr<const Benchmark> today;

  const Step* find_step(const std::string& step) const;
};

// All parameters and all patterns, in the order of their sets' names.
std::vector<std::reference_wrapper<const Parameter>> all_parameters(const Benchmark& benchmark);
std::vector<std::reference_wrapper<const Pattern>> all_patterns(const Benchmark& benchmark);
// The first one of that name. Null: there is none.
const Parameter* find_parameter(const Benchmark& benchmark, std::string_view name);
const Pattern* find_pattern(const Benchmark& benchmark, std::string_view name);
// The tables of all its results.
std::vector<const Table*> tables_of(const Benchmark& benchmark);
// Whether `step` depends on `ancestor`, directly or through other steps.
bool depends_on(const Benchmark& benchmark, const std::string& step, const std::string& ancestor);
// Whether a parameter of this name is the user's.
bool has_users(const Benchmark& benchmark, std::string_view name);
// Whether one of its parameters is a secret.
bool has_secrets(const Benchmark& benchmark);

struct Workflow {
  std::vector<Benchmark> benchmarks;
  std::vector<std::string> tags;  // the active tags, from the command line and the file
};

}  // namespace tally
