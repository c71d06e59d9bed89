// The names of values that patterns and outputs use. Private to check/.
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/check/tags_and_selection.h"
#include "engine/workflow/workflow.h"

namespace tally {

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
  void check_filter(const Text& filter, const std::vector<Column>& columns,
                    const std::string& where) const;
  // Each `$name` in a pattern's text. What is left for a shell or perl is not looked at.
  void check_pattern(const Pattern& pattern) const;

 private:
  // Names that an expression may use: of values and of other columns.
  using Names = std::vector<std::string>;

  bool is_value(const std::string& name) const;
  bool is_value(const std::string& name, const Names& columns) const;
  void report(const Mark& mark, std::string message, std::string hint) const;
  void report_column(const std::string& name, const Mark& mark, const std::string& where) const;
  void check_relative(const Column& column, const Names& columns) const;
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
