#include "engine/check/result_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/text.h"
#include "engine/python/tokens.h"
#include "engine/workflow/column_order.h"
#include "engine/workflow/pattern_uses.h"
#include "engine/workflow/table_names.h"

namespace tally {
namespace {

void check_column(const Benchmark& benchmark, const Column& column, Diagnostics& diagnostics) {
  if (column.statistic == nullptr) return;
  const std::string& name = column.name.value;
  if (column.uncertainty == Uncertainty::ci && column.statistic->interval == nullptr) {
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
  if (!is_match_value(benchmark, name)) {
    diagnostics.error(column.name.mark,
                      fmt::format("column '{}' is not a pattern; a statistic is of a number that "
                                  "each repeat prints",
                                  name));
  }
}

bool is_computed(const Column& column) {
  return !column.expression.value.empty() || !column.relative_to.empty();
}

// Whether both columns compute the same, of which they may show several statistics. A ratio is one of
// its statistic.
bool compute_the_same(const Column& one, const Column& other) {
  const auto same = [](const auto& a, const auto& b) {
    return a.first.value == b.first.value && a.second.value == b.second.value;
  };
  if (one.expression.value != other.expression.value ||
      !std::ranges::equal(one.relative_to, other.relative_to, same))
    return false;
  return one.relative_to.empty() ||
         (one.name.value == other.name.value && one.statistic == other.statistic);
}

// A row has one value of a name. check_expression_names() says of an expression beside a plain value.
void check_value_names(const Column& column, const Column& other, Diagnostics& diagnostics) {
  const bool said = column.name.value == other.name.value &&
                    column.expression.value.empty() != other.expression.value.empty();
  const auto is_plain_statistic = [](const Column& one) {
    return !is_computed(one) && one.statistic != nullptr;  // has a key of its own
  };
  if (is_plain_statistic(column) || is_plain_statistic(other)) return;
  if (said || (!is_computed(column) && !is_computed(other)) ||
      value_name(column) != value_name(other) || compute_the_same(column, other))
    return;
  const bool ratio = other.expression.value.empty() && !other.relative_to.empty();
  diagnostics.error(other.name.mark,
                    fmt::format("columns '{}' and '{}' have values of one name, '{}'",
                                column.column_title(), other.column_title(), value_name(other)),
                    ratio ? "give the ratio a title of its own"
                          : "give the expression a name of its own: `{_: NAME, expression: ...}`");
}

// The value of an expression replaces that of its name, also in the columns before it.
void check_expression_names(const Table& table, Diagnostics& diagnostics) {
  for (const Column& column : table.columns) {
    const auto shows_it = [&](const Column& other) {
      return !column.expression.value.empty() && other.expression.value.empty() &&
             other.name.value == column.name.value;
    };
    if (std::ranges::any_of(table.columns, shows_it)) {
      diagnostics.error(column.name.mark,
                        fmt::format("column '{}' is an expression, and another column shows the "
                                    "value of that name",
                                    column.name.value),
                        "give the expression a name of its own: `{_: NAME, expression: ...}`");
      continue;
    }
    for (const Column& earlier : table.columns) {
      if (&earlier == &column) break;
      check_value_names(earlier, column, diagnostics);
    }
  }
}

// A fleet is judged by its metrics, machine by machine.
void check_fleet(const Benchmark& benchmark, Diagnostics& diagnostics) {
  const Fleet& fleet = benchmark.fleet;
  if (!fleet.any) return;
  std::vector<Text> patterns = fleet.same;
  patterns.insert(patterns.end(), fleet.show.begin(), fleet.show.end());
  if (!fleet.part.value.empty()) patterns.push_back(fleet.part);
  for (const Text& name : patterns) {
    if (find_pattern(benchmark, name.value) != nullptr) continue;
    diagnostics.error(name.mark, fmt::format("fleet: no pattern is called '{}'", name.value));
  }
  const bool has_parts =
      fleet.part.value.empty() || find_pattern(benchmark, fleet.part.value) == nullptr ||
      std::ranges::any_of(benchmark.analysers, [&](const Analyser& analyser) {
        return std::ranges::any_of(
            analyser.rows, [&](const Text& name) { return name.value == fleet.part.value; });
      });
  if (!has_parts)
    diagnostics.error(
        fleet.part.mark,
        fmt::format("fleet: part: no analyser has '{}' in its `rows`", fleet.part.value),
        "a machine's parts are told apart by rows: `rows: " + fleet.part.value + "`");
  if (find_parameter(benchmark, kFleetNode) == nullptr)
    diagnostics.error(fleet.mark, "fleet: no parameter is called 'node'",
                      "a step that tests a machine uses a set with `{name: node, _: localhost}`");
  const std::vector<const Table*> tables = tables_of(benchmark);
  const bool any = std::ranges::any_of(tables, [](const Table* table) {
    return std::ranges::any_of(
        table->columns, [](const Column& column) { return column.better != Better::unknown; });
  });
  if (!any)
    diagnostics.error(fleet.mark, "fleet: no column says which rate is judged",
                      "give the column of a rate `better: higher`, or `better: lower`");
}

}  // namespace

void check_statistics(const Benchmark& benchmark, Diagnostics& diagnostics) {
  for (const Table* table : tables_of(benchmark)) {
    for (const Column& column : table->columns) check_column(benchmark, column, diagnostics);
    check_expression_names(*table, diagnostics);
  }
  check_fleet(benchmark, diagnostics);
}

namespace {

// Finds texts where a key needs numbers. The rule stands in the reference ("Values without a type"):
// Python takes such a value for a number beside numbers, and these keys need a `type`.
class NumberCheck {
 public:
  NumberCheck(const Benchmark& benchmark, Diagnostics& diagnostics)
      : benchmark_(benchmark), diagnostics_(diagnostics) {}

  void check() {
    for (const Step& step : benchmark_.steps) {
      rows_ = {judges(step), &step};
      need("until", step.until.metric, "`until`");
    }
    rows_ = {};
    for (const auto& [name, set] : benchmark_.pattern_sets) {
      for (const Pattern& pattern : set.patterns)
        need(fmt::format("pattern '{}'", pattern.name.value), pattern.measured_over,
             "`measured_over`");
    }
    for (const Result& result : benchmark_.results) {
      for (const auto& output : result.outputs) {
        // All rows count: a filter would leave out one with a text, or it would lack a value, without a word.
        rows_ = RowsOf{result.use};
        std::visit([&](const auto& one) { look(one); }, output);
      }
    }
  }

 private:
  // The analyser by which `until` of the step is judged: the first that has the metric.
  std::vector<Text> judges(const Step& step) const {
    for (const Analyser& analyser : benchmark_.analysers) {
      for (const Analyse& analyse : analyser.analyse) {
        if (analyse.step.value != step.name.value) continue;
        for (const AnalyseFile& file : analyse.files) {
          for (const Pattern* pattern : patterns_for(benchmark_, analyser, file))
            if (pattern->name.value == step.until.metric.value) return {analyser.name};
        }
      }
    }
    return {};
  }
  void look(const Table& table) {
    for (const Column& column : table.columns) look(column);
    look("the filter", table.filter);
    for (const Reference& reference : table.references) {
      const std::string what = fmt::format("a reference of '{}'", reference.column.value);
      if (reference.of.empty()) {
        look(what, reference.condition);
      } else {
        need(what, {reference.column.value, reference.condition.mark}, "`of`");
      }
      look(what, reference.where);
    }
  }
  void look(const Database& database) {
    for (const Column& key : database.keys) look(key);
    look("the filter", database.filter);
  }
  void look(const Syslog& syslog) {
    for (const Column& key : syslog.keys) look(key);
    look("the filter", syslog.filter);
  }

  void look(const Column& column) {
    const std::string what = fmt::format("column '{}'", column.column_title());
    if (!column.expression.value.empty()) {
      // Also of its baseline row.
      const std::vector<std::string> names = names_computed_with(column);
      for (const std::string& name : std::set<std::string>(names.begin(), names.end()))
        refuse_statistic(what, name, column.expression.mark);
    } else if (column.statistic != nullptr) {
      need(what, column.name, "a statistic");
    } else if (!column.relative_to.empty()) {
      need(what, column.name, "`relative_to`");
    } else if (column.better != Better::unknown) {
      need(what, column.name, "`better`");
    } else {
      refuse_statistic(what, column.name.value, column.name.mark);
    }
  }
  // An expression may name a statistic of numbers.
  void look(const std::string& what, const Text& expression) {
    for (const std::string& name : names_read(expression.value))
      refuse_statistic(what, name, expression.mark);
  }

  void need(const std::string& what, const Text& name, const char* needs) {
    if (const std::optional<TextValue> text = text_named(benchmark_, name.value, rows_))
      refuse(what, *text, fmt::format("{} needs numbers", needs), name.mark);
  }
  void refuse_statistic(const std::string& what, const std::string& name, const Mark& mark) {
    if (!is_of_numbers(benchmark_, name)) return;
    if (const std::optional<TextValue> text = text_named(benchmark_, name, rows_))
      refuse(what, *text, fmt::format("'{}' needs numbers", name), mark);
  }
  void refuse(const std::string& what, const TextValue& text, const std::string& need,
              const Mark& mark) {
    diagnostics_.error(
        mark,
        fmt::format("{}: the type of {} '{}' is string{}, and {}", what, text.kind, text.name,
                    text.step.empty() ? "" : fmt::format(" in rows of step '{}'", text.step), need),
        fmt::format("give the {} `type: float` or `type: int`", text.kind));
  }

  const Benchmark& benchmark_;
  Diagnostics& diagnostics_;
  RowsOf rows_;  // of which values are asked; none: of all that some row may have
};

}  // namespace

void check_numbers(const Benchmark& benchmark, Diagnostics& diagnostics) {
  NumberCheck(benchmark, diagnostics).check();
}

namespace {

constexpr const char* kWhen = "kind: result is done once, after the tables of all other steps";

struct Given {
  const char* key;
  const Text* text;
  const char* otherwise;
};

class Checker {
 public:
  Checker(const Benchmark& benchmark, Diagnostics& diagnostics)
      : benchmark_(benchmark), diagnostics_(diagnostics) {}

  void check() {
    for (const Step& step : benchmark_.steps) {
      for (const Text& parent : step.depend) refuse_parent(step, parent);
      if (has_workpackages(step)) continue;
      check_keys(step);
      check_operations(step);
      for (const Text& use : step.use) check_set(step, use);
    }
    for (const Analyser& analyser : benchmark_.analysers) {
      for (const Analyse& analyse : analyser.analyse) {
        if (!is_result(analyse.step.value)) continue;
        diagnostics_.error(analyse.step.mark,
                           fmt::format("analyser '{}' reads step '{}', whose {}",
                                       analyser.name.value, analyse.step.value, kWhen),
                           "let the analyser read a step of another kind");
      }
    }
  }

 private:
  bool is_result(const std::string& name) const {
    const Step* step = benchmark_.find_step(name);
    return step != nullptr && !has_workpackages(*step);
  }

  void refuse_parent(const Step& step, const Text& parent) {
    if (!has_workpackages(step)) {
      refuse(step, "depend", parent.mark);
    } else if (is_result(parent.value)) {
      diagnostics_.error(parent.mark,
                         fmt::format("step '{}' depends on step '{}', whose {}", step.name.value,
                                     parent.value, kWhen),
                         "give its commands to the result step, or make that a plain step");
    }
  }

  void refuse(const Step& step, const char* key, const Mark& mark) {
    diagnostics_.error(
        mark, fmt::format("'{}' in step '{}' needs workpackages", key, step.name.value), kWhen);
  }

  void check_keys(const Step& step) {
    const Given keys[] = {
        {"work_dir", &step.work_dir, ""},      {"suffix", &step.suffix, ""},
        {"active", &step.active, "true"},      {"max_async", &step.max_async, "0"},
        {"iterations", &step.iterations, "1"}, {"cycles", &step.cycles, "1"},
        {"procs", &step.procs, "1"},           {"do_log_file", &step.do_log_file, ""},
        {"timeout", &step.timeout, ""},        {"retry", &step.retry, ""},
        {"repeat", &step.repeat, ""},          {"gpu_slots", &step.gpu_slots, ""}};
    for (const Given& one : keys)
      if (one.text->value != one.otherwise) refuse(step, one.key, one.text->mark);
    if (!step.shared.empty()) refuse(step, "shared", step.name.mark);
    if (step.exported) refuse(step, "export", step.name.mark);
    if (!step.modules.empty()) refuse(step, "modules", step.modules.front().mark);
    if (!step.expect.empty()) refuse(step, "expect", step.expect.front().mark);
    if (step.operations.empty())
      diagnostics_.error(step.name.mark, fmt::format("step '{}' does nothing", step.name.value),
                         "give it 'do'");
  }

  void check_operations(const Step& step) {
    for (const Operation& one : step.operations) {
      const Given keys[] = {{"active", &one.active, "true"},    {"stdout", &one.stdout_file, ""},
                            {"stderr", &one.stderr_file, ""},   {"work_dir", &one.work_dir, ""},
                            {"done_file", &one.done_file, ""},  {"error_file", &one.error_file, ""},
                            {"break_file", &one.break_file, ""}};
      for (const Given& key : keys)
        if (key.text->value != key.otherwise) refuse(step, key.key, key.text->mark);
      if (one.shared) refuse(step, "shared", one.command.mark);
    }
  }

  // Only file sets without commands: a parameter has no value outside a workpackage.
  void check_set(const Step& step, const Text& use) {
    const auto files = benchmark_.file_sets.find(use.value);
    if (files == benchmark_.file_sets.end()) {
      diagnostics_.error(
          use.mark,
          fmt::format("step '{}' uses '{}', which is no file set", step.name.value, use.value),
          "a step of kind: result has no parameters and substitutes nothing");
      return;
    }
    for (const auto& entry : files->second.entries) {
      const auto* copy = std::get_if<FileCopy>(&entry);
      if (copy != nullptr && copy->internal)
        diagnostics_.error(use.mark,
                           fmt::format("step '{}' uses file set '{}', which copies from the work "
                                       "folder of a workpackage (rel_path_ref: internal)",
                                       step.name.value, use.value),
                           "name the file by its place beside the workflow");
      if (copy != nullptr) continue;
      diagnostics_.error(use.mark,
                         fmt::format("step '{}' uses file set '{}', which has a prepare command",
                                     step.name.value, use.value),
                         "give the command to the step's 'do'");
    }
  }

  const Benchmark& benchmark_;
  Diagnostics& diagnostics_;
};

}  // namespace

void check_result_steps(const Benchmark& benchmark, Diagnostics& diagnostics) {
  Checker(benchmark, diagnostics).check();
}

}  // namespace tally
