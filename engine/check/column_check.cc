#include "engine/check/column_check.h"

#include <fmt/format.h>

#include <variant>

#include "engine/workflow/sample_names.h"

namespace tally {
namespace {

const Pattern* find_pattern(const Benchmark& benchmark, const std::string& name) {
  for (const auto& [set_name, set] : benchmark.pattern_sets) {
    for (const Pattern& pattern : set.patterns) {
      if (pattern.name.value == name) return &pattern;
    }
  }
  return nullptr;
}

void check_column(const Benchmark& benchmark, const Column& column, Diagnostics& diagnostics) {
  if (column.statistic == Statistic::none) return;
  const std::string& name = column.name.value;
  const Statistic statistic = column.statistic;
  const bool has_interval = statistic == Statistic::median || statistic == Statistic::mean;
  if (column.uncertainty == Uncertainty::ci && !has_interval) {
    diagnostics.error(column.name.mark,
                      fmt::format("column '{}': only the median and the mean have a confidence "
                                  "interval (uncertainty: ci)",
                                  name),
                      "use `uncertainty: range` or `mad`, or `statistic: median`");
  }
  if (column.uncertainty != Uncertainty::none && !column.relative_to.empty()) {
    diagnostics.error(
        column.name.mark,
        fmt::format("column '{}': a value relative to a baseline has no uncertainty", name),
        "give the plain column the uncertainty; `tally compare` has intervals of "
        "ratios");
  }
  if (!column.expression.value.empty()) {
    if (column.relative_to.empty()) return;
    diagnostics.error(column.name.mark,
                      fmt::format("column '{}' has statistic, expression and relative_to; the "
                                  "baseline has no repeats to compare with one by one",
                                  name),
                      "give the plain column the statistic and leave it out here");
    return;
  }
  const Pattern* pattern = find_pattern(benchmark, name);
  if (!is_match_value(benchmark, name)) {
    diagnostics.error(column.name.mark,
                      fmt::format("column '{}' is not a pattern; a statistic is of a number that "
                                  "each repeat prints",
                                  name));
  } else if (pattern != nullptr && pattern->type == ValueType::string) {
    diagnostics.error(column.name.mark,
                      fmt::format("column '{}': the pattern's type is string, and a statistic is "
                                  "of numbers",
                                  name),
                      "give the pattern `type: float` or `type: int`");
  }
}

// The value of an expression replaces that of its name, also in the columns before it.
void check_expression_names(const Table& table, Diagnostics& diagnostics) {
  for (const Column& column : table.columns) {
    if (column.expression.value.empty()) continue;
    for (const Column& other : table.columns) {
      if (!other.expression.value.empty() || other.name.value != column.name.value) continue;
      diagnostics.error(column.name.mark,
                        fmt::format("column '{}' is an expression, and another column shows the "
                                    "value of that name",
                                    column.name.value),
                        "give the expression a name of its own: `{_: NAME, expression: ...}`");
      break;
    }
  }
}

}  // namespace

void check_statistics(const Benchmark& benchmark, Diagnostics& diagnostics) {
  for (const Result& result : benchmark.results) {
    for (const auto& output : result.outputs) {
      const auto* table = std::get_if<Table>(&output);
      if (table == nullptr) continue;
      for (const Column& column : table->columns) check_column(benchmark, column, diagnostics);
      check_expression_names(*table, diagnostics);
    }
  }
}

}  // namespace tally
