// Checks that the names in a benchmark refer to something. Internal to check/.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/check/check.h"
#include "engine/check/tags_and_selection.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Reports sets, steps, analysers and columns that are named but not defined, and steps that depend
// on each other in a cycle. An analyser or result that names something a tag removed is only a
// warning. JUBE, too, runs the steps and reports the problem when the analyser is used. With
// `strict`, names of values are checked as ValueNames says.
void check_named(const Benchmark& benchmark, const RemovedNames& removed, bool strict,
                 const Sources& sources, Diagnostics& diagnostics);
// Reports what analysers and results name without a definition, where the steps are those of a run.
void check_named_by_results(const Benchmark& benchmark, const RemovedNames& removed, bool strict,
                            const Sources& sources, Diagnostics& diagnostics);

// Reports `$names` in commands that neither a parameter nor a built-in variable defines. This is a
// warning, because the shell may know the name. With `strict` it is an error if neither the
// commands nor the environment give the name a value.
void check_dollar_names(const Benchmark& benchmark, bool strict, const Sources& sources,
                        Diagnostics& diagnostics);

// Reports two patterns of one name that a step is searched for. Matches of both would be mixed in
// one column.
void check_pattern_names(const Benchmark& benchmark, const Analyser& analyser,
                         const Analyse& analyse, Diagnostics& diagnostics);

// The `$names` in a text of the user, and where a text stands in a file.
struct DollarName {
  std::string name;
  std::string written;  // with the dollar, to find it in the source
  size_t at = 0;        // position of the dollar in the command
};

// The names that a text refers to, by string.Template's rules: $name, ${name}; $$ is a dollar.
std::vector<DollarName> dollar_names(std::string_view text);

// Finds `written`, which ends a word and begins one if it is a name, at or after `mark` in the
// source, within the next lines. Returns `mark` if it is not found.
Mark place_of(const Sources& sources, const Mark& mark, const std::string& written);

// Reports names that no row has a value of, with the nearest one. With `strict` they are errors,
// unless tags removed something: that may have defined them. Otherwise a column or sort key is a
// warning, and nothing else is reported.
class ValueNames {
 public:
  ValueNames(const Benchmark& benchmark, const RemovedNames& removed, bool strict,
             const Sources& sources, Diagnostics& diagnostics);

  // `where`: "table 't'"
  void check_columns(const std::vector<Column>& columns, const std::string& where) const;
  void check_sort(const std::vector<std::string>& sort, const Mark& mark,
                  const std::string& where) const;
  // A rule of a parameter set. Where it has a `$name`, its words are known only with the values.
  void check_rule(const Text& rule, const std::string& where) const;
  void check_filter(const Text& filter, const std::vector<Column>& columns,
                    const std::string& where) const;
  // Each `$name` in a pattern's text. Text that is left for a shell or perl is not looked at.
  void check_pattern(const Pattern& pattern) const;

 private:
  // Names that an expression may use: of values and of other columns.
  using Names = std::vector<std::string>;

  bool is_value(const std::string& name) const;
  bool is_value(const std::string& name, const Names& columns) const;
  void report(const Mark& mark, std::string message, std::string hint) const;
  void report_column(const std::string& name, const Mark& mark, const std::string& where) const;
  void check_relative(const Column& column, const Names& columns) const;
  void check_order(const std::vector<Column>& columns) const;
  // `compares`: the expression may use baseline.NAME.
  void check_expression(const Text& expression, const std::string& what, bool compares,
                        const Names& columns) const;

  const Benchmark& benchmark_;
  const bool may_be_removed_, strict_;
  const Sources& sources_;
  Diagnostics& diagnostics_;
  Names names_;  // all names that a column may show, rather too many than too few
  Names steps_;
};

}  // namespace tally
