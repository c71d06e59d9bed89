#include "engine/read/schema.h"

#include <algorithm>
#include <cstring>

#include "engine/base/text.h"
#include "engine/read/short_form.h"
#include "engine/statistics/named.h"
#include "engine/workflow/table_names.h"

namespace tally {

namespace {

constexpr Language J = Language::jube;
constexpr Language T = Language::tally;
using R = ValueRule;

}  // namespace

const std::vector<ElementRule>& element_rules() {
  static const std::vector<ElementRule> rules = {
      {"jube", "jube", "", J, false, "The whole file; in YAML the top level."},
      {"include-path", "include-path", "jube", J, false,
       "Directories searched for included files."},
      {"path", "path", "include-path", J, false, "One directory, relative to the file."},
      {"selection", "selection", "jube", J, false, "Which benchmarks of the file run."},
      {"only", "only", "selection", J, false, "Names of the benchmarks to run."},
      {"not", "not", "selection", J, false, "Names of the benchmarks to leave out."},
      {"selection.tag", "tag", "selection", J, false,
       "Tags set in addition to the command line's."},
      {"check_tags", "check_tags", "jube tags", J, false,
       "A tag expression that must hold, or nothing runs."},
      {"tags", "tags", "jube", J, false, "The tags of the file, described."},
      {"tags.tag", "tag", "tags", J, false, "The description of one tag."},
      {"benchmark", "benchmark", "jube", J, false, "One benchmark; a file may hold several."},
      {"comment", "comment", "benchmark", J, false, "Free text kept with the run."},
      {"parameterset", "parameterset", "jube benchmark", J, false,
       "Parameters used together by a step."},
      {"parameter", "parameter", "parameterset", J, false,
       "A value, or a list of values that spans the parameter space."},
      {"zip", "zip", "parameterset", T, false,
       "Parameters whose lists advance together instead of crossing: `zip: [nodes, tasks]`, or a "
       "list "
       "of such lists."},
      {"where", "where", "parameterset", T, false,
       "A Python expression over the parameters; a point for which it is false is left out. "
       "`$name` "
       "stands for the value's text, `name` for the value: one of type string is a text beside "
       "texts and, if it reads as one, a number beside numbers."},
      {"substituteset", "substituteset", "jube benchmark", J, false,
       "Text replacements in files, such as job script templates."},
      {"iofile", "iofile", "substituteset", J, false, "A file to read and the file to write."},
      {"sub", "sub", "substituteset", J, false, "One replacement."},
      {"fileset", "fileset", "jube benchmark", J, false, "Files a step needs in its directory."},
      {"copy", "copy", "fileset", J, false, "Files to copy."},
      {"link", "link", "fileset", J, false, "Files to link to."},
      {"prepare", "prepare", "fileset", J, false, "A command run after the files are in place."},
      {"patternset", "patternset", "jube benchmark", J, false,
       "Patterns searched for in the output."},
      {"pattern", "pattern", "patternset", J, false,
       "A regular expression, or a value computed from other patterns."},
      {"step", "step", "benchmark", J, false, "One stage of the benchmark."},
      {"step.use", "use", "step", J, false, "Sets the step uses, by name."},
      {"do", "do", "step", J, false, "A shell command."},
      {"resources", "resources", "step components", T, false,
       "What a run step asks of its platform. A key with a list is a parameter of its name with "
       "these "
       "values: `nodes: [1, 2, 4]`."},
      {"components", "components", "step", T, false,
       "Parts of one job with nodes of different kinds, each with `resources` and `launch` of its "
       "own: "
       "a heterogeneous job of Slurm. docs/platforms.md has the rules."},
      {"options", "options", "resources platform", T, true,
       "Further scheduler options by name, as `constraint: gpu`."},
      {"launch", "launch", "step components", T, false,
       "The program and its arguments; the platform starts it on the resources (run steps)."},
      {"env", "env", "step platform container", T, true,
       "Environment variables to set, by name; a value may name others "
       "([below](#variables-in-env))."},
      {"env_unset", "env_unset", "step", T, false, "Environment variables to remove in the step."},
      {"modules", "modules", "step platform", T, false,
       "Environment modules to load, in order; a step's come after its platform's."},
      {"repeat", "repeat", "step", T, false,
       "Measurements of each point, interleaved over the points: a number, or how many at least "
       "and "
       "at most."},
      {"until", "until", "repeat", T, false, "No more repeats once a result is precise enough."},
      {"expect", "expect", "step", T, false, "Outcomes that are results, not failures."},
      {"input", "input", "step", T, false,
       "Files, folders and globs, from the input file's folder, that a setup or build step reads "
       "without naming them in its commands: it is done again when their content changes."},
      {"step.platform", "platform", "step", T, false,
       "Where a run step's jobs go: a file with a `platform`, or the name of one: `NAME.yaml` or "
       "`NAME/platform.yaml` in the include path or the shipped templates (local, slurm), or of a "
       "scheduler's table (sge, pbs, lsf, flux). "
       "Of several, tags choose one."},
      {"platform", "platform", "jube benchmark", T, false,
       "A site's cluster, described once, in a file of its own: the sets that run steps use are "
       "made of it and of the scheduler's template. docs/platforms.md has the whole story."},
      {"interconnect", "interconnect", "platform", T, true,
       "Environment variables by which NCCL, UCX and MPI find the network, as "
       "`NCCL_SOCKET_IFNAME: ib0`."},
      {"pack", "pack", "step", T, false,
       "Several of a run step's workpackages in one job of the scheduler."},
      {"container", "container", "platform step", T, false,
       "The image in which a run step's program is started; a step's keys come before its "
       "platform's."},
      {"fleet", "fleet", "benchmark", T, false,
       "Makes the workflow one for `tally fleet`, which tests many equal machines: the parameter "
       "`node` has one at a time, `pair` the two of a link. docs/fleet.md has the whole story."},
      {"analyser", "analyser", "benchmark", J, false,
       "Which patterns are searched in which files."},
      {"analyser.use", "use", "analyser", J, false, "Pattern sets, by name."},
      {"analyse", "analyse", "analyser", J, false, "The files of one step."},
      {"file", "file", "analyse", J, false, "Files in the step's work directory."},
      {"result", "result", "benchmark", J, false, "What is made of the analysed values."},
      {"result.use", "use", "result", J, false, "Analysers, by name."},
      {"table", "table", "result", J, false, "A table, printed and written to result/NAME.dat."},
      {"column", "column", "table", J, false, "A column: a parameter or a pattern."},
      {"relative_to", "relative_to", "column", T, true,
       "The baseline row: its values by name, as `devices: 1`; all other parameters are equal."},
      {"column.reference", "reference", "column", T, false,
       "What the column's value must satisfy in each row, as `<= 560`. Where one does not, or has "
       "no value, the exit code is 5."},
      {"table.reference", "reference", "table", T, false,
       "What a column's value must satisfy in each row, as `<= 560`. Where one does not, or has "
       "no value, the exit code is 5."},
      {"chart", "chart", "result", T, false,
       "A chart of a table's rows, drawn into result/NAME.svg."},
      {"published", "published", "chart", T, false,
       "Published numbers of another machine, drawn as a line, points or bars beside the rows. "
       "They are not results of the run and are not compared with them."},
      {"syslog", "syslog", "result", J, false, "Rows sent to a system log."},
      {"database", "database", "result", J, false, "Rows written to an SQLite database."},
      {"key", "key", "syslog database", J, false, "One value of a row."},
  };
  return rules;
}

const std::vector<KeyRule>& key_rules() {
  static const std::vector<KeyRule> rules = {
      {"jube", "version", R::text, "", J, false, "", "Version of JUBE the file was written for."},

      {"path", "_", R::text, "", J, true, "", "The directory."},
      {"only", "_", R::names, "", J, true, "", "Benchmark names."},
      {"not", "_", R::names, "", J, true, "", "Benchmark names."},
      {"selection.tag", "_", R::names, "", J, true, "", "Tag names."},
      {"check_tags", "_", R::text, "", J, true, "", "The tag expression."},
      {"tags", "forced", R::boolean, "", J, false, "false", "Every tag used must be described."},
      {"tags.tag", "name", R::text, "", J, true, "", "The tag."},
      {"tags.tag", "_", R::text, "", J, false, "", "Its description."},

      {"benchmark", "name", R::text, "", J, true, "", "The benchmark's name."},
      {"benchmark", "outpath", R::text, "", J, false, "",
       "Where runs are kept, relative to the file; or given by -o."},
      {"benchmark", "file_path_ref", R::text, "", J, false, "the file's directory",
       "Directory that relative paths start from."},
      {"comment", "_", R::text, "", J, false, "", "The text."},

      {"parameterset", "name", R::name, "", J, true, "", "The set's name."},
      {"parameterset", "init_with", R::text, "", J, false, "",
       "`FILE[:NAME]`: a set whose parameters are taken over first."},
      {"parameterset", "duplicate", R::choice, "replace|concat|error", J, false, "replace",
       "What to do with a parameter defined twice."},
      {"parameter", "name", R::identifier, "", J, true, "", "The parameter's name."},
      {"parameter", "_", R::text, "", J, false, "", "The value; a list is split at the separator."},
      {"parameter", "type", R::choice, "string|int|float", J, false, "string",
       "Type, for checking and sorting."},
      {"parameter", "mode", R::choice, "text|python|perl|shell|env|tag", J, false, "text",
       "How the value is found: as it stands, by a script, from the environment or the tags."},
      {"parameter", "separator", R::text, "", J, false, ",",
       "Splits a list of values; empty: never split."},
      {"parameter", "unit", R::text, "", J, false, "", "Unit shown in tables."},
      {"parameter", "allowed", R::text, "", T, false, "",
       "The values that it may have, as `fp32,bf16`, or a condition on a number: `>= 1`, `1 .. 8`. "
       "Any other value is an error before anything runs."},
      {"parameter", "export", R::boolean, "", J, false, "false",
       "Put the value into the commands' environment."},
      {"parameter", "update_mode", R::choice, "never|use|step|cycle|always", J, false, "never",
       "When the value is computed again."},
      {"parameter", "duplicate", R::choice, "none|replace|concat|error", J, false, "none",
       "What to do when defined twice; none: as the set says."},
      {"parameter", "selection", R::text, "", J, false, "", "Accepted, without effect."},
      {"zip", "_", R::names, "", T, true, "", "The parameters."},
      {"where", "_", R::text, "", T, true, "", "The expression."},

      {"substituteset", "name", R::name, "", J, true, "", "The set's name."},
      {"substituteset", "init_with", R::text, "", J, false, "",
       "`FILE[:NAME]`: a set whose entries are taken over first."},
      {"iofile", "in", R::text, "", J, true, "", "The template."},
      {"iofile", "out", R::text, "", J, true, "", "The file written; may be the same."},
      {"iofile", "out_mode", R::choice, "w|a", J, false, "w", "Overwrite or append."},
      {"sub", "source", R::text, "", J, true, "", "What to replace."},
      {"sub", "dest", R::text, "", J, false, "", "By what; or the element's text."},
      {"sub", "_", R::text, "", J, false, "", "By what, when there is no `dest`."},
      {"sub", "mode", R::choice, "text|regex|line", J, false, "text",
       "Plain text, Python's re.sub, or (Tally) whole lines: one that is the source alone is "
       "replaced, "
       "and left out when dest is empty."},

      {"fileset", "name", R::name, "", J, true, "", "The set's name."},
      {"fileset", "init_with", R::text, "", J, false, "",
       "`FILE[:NAME]`: a set whose entries are taken over first."},
  };
  static const std::vector<KeyRule> more = {
      {"prepare", "_", R::text, "", J, true, "", "The command."},
      {"prepare", "stdout", R::text, "", J, false, "stdout", "File for its output."},
      {"prepare", "stderr", R::text, "", J, false, "stderr", "File for its errors."},
      {"prepare", "work_dir", R::text, "", J, false, "", "Directory it runs in."},
      {"prepare", "active", R::expression, "", J, false, "true", "Whether it runs."},

      {"patternset", "name", R::name, "", J, true, "", "The set's name."},
      {"patternset", "init_with", R::text, "", J, false, "",
       "`FILE[:NAME]`: a set whose patterns are taken over first."},
      {"pattern", "name", R::identifier, "", J, true, "", "The pattern's name."},
      {"pattern", "_", R::text, "", J, false, "", "The regular expression or the script."},
      {"pattern", "mode", R::choice, "pattern|text|python|perl|shell", J, false, "pattern",
       "Searched for, or derived from other values."},
      {"pattern", "type", R::choice, "string|int|float", J, false, "string", "Type of the value."},
      {"pattern", "unit", R::text, "", J, false, "", "Unit shown in tables."},
      {"pattern", "default", R::text, "", J, false, "", "Value when nothing is found."},
      {"pattern", "dotall", R::boolean, "", J, false, "false", "A dot matches newlines too."},
      {"pattern", "measured_over", R::identifier, "", T, false, "",
       "The pattern that has the seconds over which the value was measured, for example of a rate. "
       "A "
       "row with less than a second is marked SHORT."},

      {"step", "name", R::name, "", J, true, "", "The step's name."},
      {"step", "depend", R::names, "", J, false, "", "Steps that must be done before."},
      {"step", "work_dir", R::text, "", J, false, "", "Another work directory."},
      {"step", "suffix", R::text, "", J, false, "", "Appended to the directory's name."},
      {"step", "shared", R::text, "", J, false, "", "Name of the link to a shared folder."},
      {"step", "active", R::expression, "", J, false, "true", "Whether the step runs."},
      {"step", "export", R::boolean, "", J, false, "false",
       "The environment is passed on to dependent steps."},
      {"step", "max_async", R::number, "", J, false, "0",
       "Workpackages waiting for a done_file at once; 0: no limit."},
      {"step", "iterations", R::number, "", J, false, "1", "Runs of each workpackage."},
      {"step", "cycles", R::number, "", J, false, "1",
       "Rounds through the commands. A program that a scheduler's job launches has one."},
      {"step", "procs", R::number, "", J, false, "1", "Workpackages of this step at once."},
      {"step", "do_log_file", R::text, "", J, false, "", "File that collects the commands."},
      {"step", "kind", R::choice, "setup|build|run|result", T, false, "",
       "One of the four kinds of step; without it, a step as JUBE knows it."},
      {"step", "timeout", R::duration, "", T, false, "",
       "Ends the step's commands after that long. Jobs have `time` of `resources`."},
      {"step", "retry", R::number, "", T, false, "0", "Further attempts after a failure."},
      {"step", "repeat", R::number, "", T, false, "1",
       "Measurements of each point, interleaved over the points."},
      {"step", "gpu_slots", R::number, "", T, false, "0",
       "GPUs of this machine a workpackage holds while it runs."},
      {"step", "reuse", R::boolean, "", T, false, "true",
       "Setup and build steps: equal work is done once, also over runs; false: in every "
       "workpackage "
       "of every run."},
      {"step", "quiet_check", R::boolean, "", T, false, "true",
       "Rows of its values are marked BUSY or THROTTLED; false: it measures nothing."},
      {"step.use", "_", R::names, "", J, true, "", "Set names; may hold $parameters."},
      {"step.use", "from", R::text, "", J, false, "",
       "`FILE[:NAME:...]`, several by comma: take the sets from there."},
      {"do", "_", R::text, "", J, false, "", "The command."},
      {"do", "stdout", R::text, "", J, false, "stdout", "File for its output."},
      {"do", "stderr", R::text, "", J, false, "stderr", "File for its errors."},
      {"do", "active", R::expression, "", J, false, "true", "Whether it runs."},
      {"do", "done_file", R::text, "", J, false, "", "The command is done once this file exists."},
      {"do", "error_file", R::text, "", J, false, "", "The command failed once this file exists."},
      {"do", "break_file", R::text, "", J, false, "", "Ends the cycles once this file exists."},
      {"do", "shared", R::boolean, "", J, false, "false", "Once for all, in the shared folder."},
      {"do", "work_dir", R::text, "", J, false, "", "Directory it runs in."},
      {"resources", "nodes", R::number, "", T, false, "", "Nodes."},
      {"resources", "tasks_per_node", R::number, "", T, false, "", "Processes a node."},
      {"resources", "cpus_per_task", R::number, "", T, false, "", "Cores a process."},
      {"resources", "gpus_per_node", R::number, "", T, false, "", "GPUs a node."},
      {"resources", "time", R::duration, "", T, false, "",
       "Wall-clock limit; a plain number is seconds."},
      {"resources", "partition", R::text, "", T, false, "", "Partition or queue."},
      {"resources", "account", R::text, "", T, false, "", "Account charged."},
      {"resources", "memory", R::text, "", T, false, "", "Memory a node, as `64G`."},
      {"resources", "hint", R::text, "", T, false, "", "Slurm's `--hint`, as `nomultithread`."},
      {"launch", "_", R::text, "", T, true, "", "The command line."},
      {"env_unset", "_", R::names, "", T, true, "", "Variable names."},
      {"input", "_", R::names, "", T, true, "", "Paths."},
      {"modules", "_", R::names, "", T, true, "", "Module names."},
      {"repeat", "_", R::number, "", T, false, "1", "How often."},
      {"repeat", "min", R::number, "", T, false, "6", "With `until`: the fewest that count."},
      {"repeat", "max", R::number, "", T, false, "", "How often, or with `until` at most."},
      {"repeat", "warmup", R::number, "", T, false, "0",
       "Repeats before the others whose values do not count."},
      {"until", "metric", R::name, "", T, true, "", "A pattern of the step's output."},
      {"until", "half_width", R::text, "", T, true, "",
       "Half of the width of the median's 95 % interval, as `1%` of the median."},
      {"expect", "_", R::names, "oom|timeout|check", T, true, "",
       "oom: exit code 3, or the scheduler's OUT_OF_MEMORY; timeout: exit code 4, or the time "
       "limit "
       "passed; check: exit code 5. The exit codes are those of tally-train."},

      {"analyser", "name", R::name, "", J, true, "", "The analyser's name."},
      {"analyser", "reduce", R::boolean, "", J, false, "true",
       "Iterations of a workpackage become one row."},
      {"analyser", "rows", R::names, "", T, false, "",
       "Patterns: each match of the first makes a row, from its line to the line of the next "
       "match. "
       "The values of all of them tell the rows apart, as parameters do. What stands above the "
       "first "
       "row, and what a pattern of another set matches, is in all rows."},
      {"analyser.use", "_", R::names, "", J, true, "", "Pattern set names."},
      {"analyser.use", "from", R::text, "", J, false, "", "As in a step's `use`."},
      {"analyse", "step", R::name, "", J, true, "", "The step."},
      {"file", "_", R::text, "", J, true, "", "Names, by comma; globs allowed."},
      {"file", "use", R::names, "", J, false, "", "Pattern sets for these files alone."},

      {"result", "result_dir", R::text, "", J, false, "",
       "Where result files go, in a folder a run; default: result/ in the run."},
      {"result.use", "_", R::names, "", J, true, "", "Analyser names."},
      {"table", "name", R::name, "", J, true, "", "The table's name, and its file's."},
      {"table", "style", R::choice, "csv|pretty|aligned", J, false, "csv", "How it is printed."},
      {"table", "separator", R::text, "", J, false, ",", "Between the cells of csv."},
      {"table", "sort", R::names, "", J, false, "", "Columns to sort by."},
      {"table", "filter", R::text, "", J, false, "", "Expression a row must satisfy."},
      {"table", "transpose", R::boolean, "", J, false, "false", "Rows become columns."},
      {"column", "_", R::text, "", J, true, "", "The parameter or pattern."},
      {"column", "title", R::text, "", J, false, "", "Heading, in place of name and unit."},
      {"column", "format", R::text, "", J, false, "", "Python format, as `.2f`."},
      {"column", "colw", R::text, "", J, false, "", "Column width."},
      {"column", "null_value", R::text, "", J, false, "", "Shown when there is no value."},
      {"column", "expression", R::text, "", T, false, "",
       "Python over the row's values; with relative_to, `baseline.NAME` is a value of the baseline "
       "row, "
       "and without any such the result is divided by the baseline row's."},
      {"column", "statistic", R::choice, statistics::column_choices(), T, false, "",
       "Of the repeats of a point, one value each; without it, the first repeat's value. The "
       "harmonic "
       "mean is for rates."},
      {"column", "uncertainty", R::choice, kUncertaintyWords, T, false, "",
       "Columns beside the value. ci: the bounds of the 95 % confidence interval of the median or "
       "the "
       "mean; mad: the median absolute deviation; range: the smallest and the largest repeat. "
       "Implies `statistic: median`."},
      {"column", "better", R::choice, "higher|lower", T, false, "",
       "Which direction is an improvement, for `tally compare`."},
      {"column.reference", "_", R::text, "", T, true, "",
       "What the value must be: `<= 560`, `10 .. 20`, `34000 +- 5%`, `34000 +- 20`, or Python."},
      {"column.reference", "where", R::text, "", T, false, "",
       "Rows it applies to, chosen as by a `filter`."},
      {"column.reference", "note", R::text, "", T, false, "", "Where the number comes from."},
      {"column.reference", "of", R::choice, statistics::suffix_choices(), T, false, "",
       "The statistic of the repeats that must satisfy it, in place of the column's value."},
      {"column.reference", "platform", R::name, "", T, false, "",
       "Only where a step runs on the platform of this name: its `platform` without folder and "
       "ending."},
      {"column.reference", "action", R::choice, "fail|warn|expect_fail", T, false, "fail",
       "Of a missed reference. fail: exit code 5; warn: a message; expect_fail: it must be missed, "
       "and exit code 5 if it is met."},
      {"column.reference", "on_fail", R::text, "", T, false, "",
       "A command that `run` and `continue` start for each row that misses it, to collect the "
       "cause."},
      {"table.reference", "_", R::text, "", T, true, "",
       "What the value must be: `<= 560`, `10 .. 20`, `34000 +- 5%`, `34000 +- 20`, or Python."},
      {"table.reference", "column", R::text, "", T, true, "", "The column."},
      {"table.reference", "where", R::text, "", T, false, "",
       "Rows it applies to, chosen as by a `filter`."},
      {"table.reference", "note", R::text, "", T, false, "", "Where the number comes from."},
      {"table.reference", "of", R::choice, statistics::suffix_choices(), T, false, "",
       "The statistic of the repeats that must satisfy it, in place of the column's value."},
      {"table.reference", "platform", R::name, "", T, false, "",
       "Only where a step runs on the platform of this name: its `platform` without folder and "
       "ending."},
      {"table.reference", "action", R::choice, "fail|warn|expect_fail", T, false, "fail",
       "Of a missed reference. fail: exit code 5; warn: a message; expect_fail: it must be missed, "
       "and exit code 5 if it is met."},
      {"table.reference", "on_fail", R::text, "", T, false, "",
       "A command that `run` and `continue` start for each row that misses it, to collect the "
       "cause."},
      {"chart", "name", R::name, "", T, true, "", "The chart's name, and its file's."},
      {"chart", "table", R::name, "", T, false, "the result's only table",
       "The table whose rows are drawn."},
      {"chart", "kind", R::choice, "bar|line|scatter|curve", T, false, "line",
       "curve: a line of many points, without markers; its interval is a band."},
      {"chart", "x", R::text, "", T, true, "", "Column along the axis, by name or title."},
      {"chart", "y", R::names, "", T, true, "",
       "Column whose values are drawn; or several, each of which has a line or bars."},
      {"chart", "series", R::text, "", T, false, "",
       "Column that has a line or a bar for each of its values."},
      {"chart", "facet", R::text, "", T, false, "",
       "Column that has a panel for each of its values."},
      {"chart", "error", R::choice, "none|ci|range|mad", T, false, "none",
       "The interval at each point: the `uncertainty` of y's column."},
      {"chart", "ideal", R::choice, "none|linear|inverse|constant", T, false, "none",
       "A line to compare with, through the best of the first points of the series: linear: y "
       "grows with x; "
       "inverse: y falls as x grows; constant."},
      {"chart", "log", R::choice, "none|x|y|xy", T, false, "none", "Logarithmic axes."},
      {"chart", "title", R::text, "", T, false, "", "A title above the chart."},
      {"published", "_", R::text, "", T, true, "",
       "The points: values of x and y, as `1: 60.5, 2: 29.9`. In a bar chart x is the bar's name."},
      {"published", "name", R::text, "", T, true, "",
       "Its name in the legend: the machine, and what was measured."},
      {"published", "facet", R::text, "", T, false, "",
       "The value of the chart's `facet` in whose panel it is drawn. Without it: in each panel."},
      {"syslog", "name", R::name, "", J, true, "", "Name of the output."},
      {"syslog", "address", R::text, "", J, false, "", "Socket of the log."},
      {"syslog", "host", R::text, "", J, false, "", "Host of the log."},
      {"syslog", "port", R::number, "", J, false, "514", "Port of the log."},
      {"syslog", "format", R::text, "", J, false, "jube[%(process)s]: %(message)s",
       "Format of a line."},
      {"syslog", "sort", R::names, "", J, false, "", "Keys to sort by."},
      {"syslog", "filter", R::text, "", J, false, "", "Expression a row must satisfy."},
      {"database", "name", R::name, "", J, true, "", "Name of the SQL table."},
      {"database", "file", R::text, "", J, false, "", "The database file."},
      {"database", "primekeys", R::names, "", J, false, "",
       "Keys, or their titles, that make a row unique."},
      {"database", "filter", R::text, "", J, false, "", "Expression a row must satisfy."},
      {"key", "_", R::text, "", J, true, "", "The parameter or pattern."},
      {"key", "title", R::text, "", J, false, "",
       "Name of the value; of a database, of its column."},
      {"key", "format", R::text, "", J, false, "", "Python format, as `.2f`."},
      {"key", "primekey", R::boolean, "", J, false, "false", "Part of what makes a row unique."},
      {"key", "null_value", R::text, "", J, false, "", "Used when there is no value."},
  };
  static const std::vector<KeyRule> sites = {
      {"step.platform", "_", R::text, "", T, true, "", "The file or the name."},

      {"fleet", "at_least", R::text, "", T, false, "95%",
       "The contract: what part of the baseline's rate a machine reaches at least."},
      {"fleet", "of_median", R::text, "", T, false, "97%",
       "What part of the fleet's median rate a machine reaches at least."},
      {"fleet", "wrong", R::text, "", T, false, "1%",
       "In how many fleets a machine may be called slow falsely, and how many slow machines may "
       "pass."},
      {"fleet", "first", R::number, "", T, false, "3",
       "Repeats of a machine before it is judged for the first time."},
      {"fleet", "same", R::names, "", T, false, "",
       "Patterns whose text is equal on all machines at the same point; a machine with another "
       "text is wrong."},
      {"fleet", "show", R::names, "", T, false, "",
       "Patterns shown of each machine, as its clock."},
      {"fleet", "part", R::name, "", T, false, "",
       "A pattern of `rows` that tells the parts of a machine apart, as its GPUs: each is judged "
       "by itself."},

      {"platform", "name", R::name, "", T, true, "", "The cluster's name."},
      {"platform", "scheduler", R::name, "", T, false, "slurm",
       "What takes its jobs: slurm, or one that a table describes (docs/schedulers.md); local: "
       "none, programs are started directly."},
      {"platform", "template", R::text, "", T, false,
       "slurm/platform.yaml, schedulers/platform.yaml",
       "The file of the four sets that it starts from."},
      {"platform", "partition", R::text, "", T, false, "", "Partition or queue."},
      {"platform", "account", R::text, "", T, false, "", "Account or project that pays."},
      {"platform", "time", R::duration, "", T, false, "00:30:00",
       "Wall-time limit of a step that names none; a plain number is seconds."},
      {"platform", "memory", R::text, "", T, false, "", "Memory of a node to ask for."},
      {"platform", "tasks_per_node", R::number, "", T, false, "1",
       "Tasks on a node of a step that does not say."},
      {"platform", "cpus_per_task", R::number, "", T, false, "1",
       "CPUs of a task of a step that does not say."},
      {"platform", "gpus_per_node", R::number, "", T, false, "",
       "GPUs on a node, for steps that do not say."},
      {"platform", "hint", R::text, "", T, false, "", "Slurm's `--hint`, as nomultithread."},
      {"platform", "signal", R::text, "", T, false, "B:TERM@60",
       "Signal to the job script and how many seconds before the time limit, in jobs longer than "
       "that "
       "and a minute; `none`: no signal."},
      {"platform", "launcher", R::text, "", T, false, "the scheduler's",
       "What starts the program on the nodes, with its options: srun, mpirun -n $tasks; `none`: "
       "nothing."},
      {"platform", "mpi", R::text, "", T, false, "", "MPI flavour that srun needs, as pmix."},
      {"platform", "tmp", R::text, "", T, false, "the work directory",
       "Folder in which every job gets a temporary one of its own; all nodes of a job see it."},
      {"platform", "cache", R::text, "", T, false, "$HOME/.cache/tally",
       "Folder in which programs keep what later jobs may use again."},
      {"platform", "max_time", R::duration, "", T, false, "",
       "The longest time limit that jobs may have there; a run that asks for more is refused. 0: "
       "no "
       "limit."},
      {"platform", "max_node_hours", R::number, "", T, false, "",
       "A run that may take more is refused before anything is submitted."},
      {"platform", "jobs_in_flight", R::number, "", T, false, "1000",
       "Most jobs of a run in the queue at once; 0: no limit."},
      {"platform", "submit_rate", R::number, "", T, false, "20",
       "Submissions a second, after a first 500; 0: no limit."},
      {"platform", "submit_patience", R::duration, "", T, false, "1h",
       "How long a scheduler that cannot be asked is tried again."},
      {"platform", "poll_slowest", R::duration, "", T, false, "30s",
       "Longest pause between two questions to the scheduler."},
      {"platform", "status_grace", R::duration, "", T, false, "30s",
       "How long a job's exit status may be on its way."},
      {"platform", "pending_limit", R::duration, "", T, false, "0",
       "A job that waits longer is cancelled and fails; 0: none."},
      {"platform", "resubmit", R::number, "", T, false, "2",
       "How often a job is submitted again after a lost node or preemption."},
      {"platform", "job_environment", R::text, "", T, false, "HOME, PATH, LC_*, ...",
       "Variables passed on from the engine's environment; `*` as in file names."},

      {"pack", "_", R::choice, "array|steps", T, true, "",
       "array: a job array, a task a workpackage; steps: one allocation, in which they run one "
       "after "
       "the other or side by side."},
      {"pack", "size", R::number, "", T, false, "1000", "Workpackages in one job at most."},
      {"pack", "at_once", R::number, "", T, false, "array: all; steps: 1",
       "How many of a job's workpackages run at the same time; steps share the nodes of one."},

      {"container", "runtime", R::choice, "apptainer|singularity|docker|podman|pyxis|none", T,
       false, "apptainer",
       "What runs the image; pyxis: Slurm's srun with this plugin; none: no container."},
      {"container", "image", R::text, "", T, false, "",
       "The image: a file, or a name with its registry."},
      {"container", "gpus", R::choice, "all|none|auto", T, false, "auto",
       "Whether the program sees the GPUs; auto: when the job asks for any."},
      {"container", "bind", R::names, "", T, false, "",
       "Further folders that it sees, `OUTSIDE[:INSIDE]`; the runs' folder it sees in any case."},
      {"container", "args", R::text, "", T, false, "", "Further options of the runtime."},
  };
  static const std::vector<KeyRule> all = [] {
    std::vector<KeyRule> joined = rules;
    for (const char* element : {"copy", "link"}) {
      const KeyRule keys[] = {
          {element, "_", R::text, "", J, true, "", "The files, by comma; globs allowed."},
          {element, "name", R::text, "", J, false, "", "New names, as many as files."},
          {element, "source_dir", R::text, "", J, false, "", "Directory of the files."},
          {element, "directory", R::text, "", J, false, "", "Old spelling of `source_dir`."},
          {element, "target_dir", R::text, "", J, false, "", "Directory they go to."},
          {element, "rel_path_ref", R::choice, "external|internal", J, false, "external",
           "Relative to the file, or to the work directory."},
          {element, "file_path_ref", R::text, "", J, false, "",
           "Directory relative paths start from."},
          {element, "separator", R::text, "", J, false, ",", "Splits the list."},
          {element, "active", R::expression, "", J, false, "true", "Whether it is done."},
      };
      joined.insert(joined.end(), std::begin(keys), std::end(keys));
    }
    joined.insert(joined.end(), more.begin(), more.end());
    joined.insert(joined.end(), sites.begin(), sites.end());
    return joined;
  }();
  return all;
}

namespace {

bool has_word(const char* words, std::string_view word) {
  std::string_view rest = words;
  while (!rest.empty()) {
    size_t end = rest.find(' ');
    if (rest.substr(0, end) == word) return true;
    if (end == std::string_view::npos) return false;
    rest.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

std::string element_name(std::string_view name) {
  return std::string(name == "analyzer" ? "analyser" : name);
}

const ElementRule* find_child(std::string_view parent, std::string_view name) {
  for (const ElementRule& rule : element_rules()) {
    if (name == rule.name && has_word(rule.parents, parent)) return &rule;
  }
  return nullptr;
}

const ElementRule* find_element(std::string_view id) {
  for (const ElementRule& rule : element_rules()) {
    if (id == rule.id) return &rule;
  }
  return nullptr;
}

const KeyRule* find_key(std::string_view element, std::string_view key) {
  for (const KeyRule& rule : key_rules()) {
    if (element == rule.element && key == rule.key) return &rule;
  }
  return nullptr;
}

bool takes_points(std::string_view element, std::string_view key) {
  return element == "resources" && find_key(element, key) != nullptr;
}

std::vector<std::string> known_names(std::string_view element) {
  std::vector<std::string> names;
  for (const KeyRule& rule : key_rules()) {
    if (element == rule.element && std::strcmp(rule.key, "_") != 0) names.emplace_back(rule.key);
  }
  for (const ElementRule& rule : element_rules()) {
    if (has_word(rule.parents, element)) names.emplace_back(rule.name);
  }
  if (element == "benchmark") {
    for (const ShortKey& key : short_keys()) names.emplace_back(key.key);
    for (std::string& name : known_names("step"))
      if (is_run_key(name)) names.push_back(std::move(name));
  }
  if (!contains(names, "tag")) names.emplace_back("tag");
  return names;
}

std::vector<std::string> choices_of(const KeyRule& rule) {
  std::vector<std::string> choices;
  std::string_view rest = rule.choices;
  while (!rest.empty()) {
    size_t end = rest.find('|');
    choices.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return choices;
}

}  // namespace tally
