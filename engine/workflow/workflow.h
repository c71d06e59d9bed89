// A checked workflow: plain values with marks, made by check/ from a Document after tags were
// applied. Everything after check/ works on these types and never sees YAML or XML. Values are as
// the user wrote them, parameters not yet substituted.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/mark.h"
#include "engine/python/value.h"
#include "engine/workflow/step_kinds.h"

namespace tally {

enum class Mode { text, python, perl, shell, env, tag };
enum class UpdateMode { never, use, step, cycle, always };
enum class Duplicate { none, replace, concat, error };

struct Parameter {
  Text name;
  Text value;
  Mode mode = Mode::text;
  ValueType type = ValueType::string;
  std::string separator = ",";  // "" never splits
  std::string unit;
  bool exported = false;
  UpdateMode update = UpdateMode::never;
  Duplicate duplicate = Duplicate::none;
};

struct ParameterSet {
  Text name;
  std::vector<Parameter> parameters;  // one a name; duplicates already resolved by their mode
  // Parameters that advance together instead of crossing: lists of names, equal lengths (Tally's
  // own).
  std::vector<std::vector<Text>> zip;
  // Python expressions; a point for which one is false is left out (Tally's own).
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

struct FileCopy {  // copy and link
  bool link = false;
  Text source;  // comma list unless separator says otherwise; glob patterns
  Text target;  // names, equal length, or empty
  std::string separator = ",";
  std::string source_dir, target_dir;
  bool internal = false;      // rel_path_ref="internal": relative to the work directory
  std::string file_path;      // folder of the file that defines this entry, or what the benchmark's
                              // file_path_ref makes of it
  std::string file_path_ref;  // its own: sources are looked for there, relative to file_path
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

// The four kinds of step of Tally's own; plain: exactly JUBE's step.
enum class StepKind { plain, setup, build, run, result };

// What a run step asks of its platform; texts may hold $parameters.
struct Resources {
  Text nodes, tasks_per_node, cpus_per_task, gpus_per_node, time, partition, account, memory;
  std::vector<std::pair<Text, Text>> extra;  // further scheduler options by name
  bool any = false;
};

// How a run step's program gets into its image; what is left empty is its platform's.
struct Container {
  Text runtime, image, gpus, bind, args;
  std::vector<std::pair<Text, Text>> env;
};

// How a run step's workpackages share jobs.
struct PackKeys {
  Text kind;  // array, steps; empty: a job each
  Text size, at_once;
};

struct Step {
  Text name;
  StepKind kind = StepKind::plain;
  std::vector<Text> depend;
  std::vector<Text> use;  // set names, may hold $parameters; file order
  std::vector<Operation> operations;
  Text work_dir, suffix;
  Text active{"true", {}};
  std::string shared;     // name of the link to the shared folder; empty: none
  bool exported = false;  // export="true": the final environment goes to the children
  Text max_async{"0", {}};
  Text iterations{"1", {}};
  Text cycles{"1", {}};
  Text procs{"1", {}};
  Text do_log_file;
  // Tally's own keys.
  Resources resources;
  Container container;
  PackKeys pack;
  Text launch;                             // run: the program's command line
  std::vector<std::pair<Text, Text>> env;  // set (value) in the step's environment
  std::vector<Text> env_unset;
  std::vector<Text> expect;  // outcomes that are results: oom, timeout
  Text timeout, retry, repeat, gpu_slots;
  std::vector<Text> modules;
  std::vector<Text> inputs;  // setup, build: files and folders whose content the result depends on
  bool reuse = true;         // setup, build: equal work is done once
  // What its kind adds; never null, and not the step's own.
  const StepKinds* kinds = &plain_kinds();
};

struct AnalyseFile {
  Text path;              // comma list, globs, relative to the work directory
  std::vector<Text> use;  // pattern sets for this file alone
};
struct Analyse {
  Text step;
  std::vector<AnalyseFile> files;
};
struct Analyser {
  Text name;
  bool reduce = true;
  std::vector<Text> use;
  std::vector<Analyse> analyse;
};

struct Column {
  Text name;  // parameter or pattern
  std::string title, format, colw;
  bool null_value_set = false;
  std::string null_value;
  bool primary_key = false;  // database
  // Tally's own: a derived column.
  Text expression;                                 // python over the row's values
  std::vector<std::pair<Text, Text>> relative_to;  // baseline row: name -> value

  // What stands above it: its title, else its name.
  const std::string& column_title() const { return title.empty() ? name.value : title; }
};
// The column that says how a row's workpackage ended, where no parameter or pattern has the name.
constexpr const char* kStatusColumn = "status";

struct Reference {  // Tally's own: expected value of a column, checked per row
  Text column, condition, note;
  Text where;
  int column_index = -1;  // of the column it stands in; -1: it stands in the table
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
  std::vector<std::string> primary_keys;  // columns of the database: titles, else names
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
struct Result {
  Text result_dir;
  std::vector<Text> use;  // analysers
  std::vector<std::variant<Table, Database, Syslog>> outputs;
};

struct Benchmark {
  Text name;
  Text outpath;
  std::string comment;
  std::string file_path;  // directory of the input file: relative paths start here
  std::string input_file;
  // JUBE's rules hold for it: its file has JUBE's keys alone, or the program was called by the name
  // jube. Made by check/, so that nobody else has to tell the two kinds of file apart.
  bool as_jube = false;
  std::map<std::string, ParameterSet> parameter_sets;
  std::map<std::string, SubstituteSet> substitute_sets;
  std::map<std::string, FileSet> file_sets;
  std::map<std::string, PatternSet> pattern_sets;
  std::vector<Step> steps;          // file order
  std::vector<Analyser> analysers;  // file order
  std::vector<Result> results;

  const Step* find_step(const std::string& step) const;
};

struct Workflow {
  std::vector<Benchmark> benchmarks;
  std::vector<std::string> tags;  // those set, from the command line and the file
};

}  // namespace tally
