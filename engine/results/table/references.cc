#include "engine/results/table/references.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "engine/base/text.h"
#include "engine/python/guarded_literal.h"
#include "engine/python/python_format.h"
#include "engine/python/tokens.h"
#include "engine/python/value.h"
#include "engine/results/table/columns.h"
#include "engine/results/table/condition.h"
#include "engine/results/table/expressions.h"
#include "engine/results/table/row_choice.h"

namespace tally {
namespace {

// The name of the reference's values in a row.
std::string value_key(const Table& table, const Reference& reference) {
  if (!reference.of.empty()) return reference.column.value + "_" + reference.of;
  if (reference.column_index < 0) return reference.column.value;
  return column_key(table.columns[static_cast<size_t>(reference.column_index)]);
}

RowCondition where_of(const Reference& reference) {
  return {reference.where, WithoutValue::leaves_out,
          fmt::format("'where' of a reference of '{}'", reference.column.value)};
}

std::string shown_value(const Table& table, const std::string& key, const Value& value) {
  std::string text;
  for (const Column& column : table.columns) {
    if (column_key(column) != key || column.format.empty()) continue;
    if (format_cell(value, column.format, true, &text)) return text;
  }
  return value.printed();
}

// The number that is compared: also that of a value without a type. NaN counts as missing.
std::optional<double> compared_number(const Value* value) {
  if (value == nullptr || value->none() || value->nan()) return {};
  if (value->number()) return value->as_double();
  const std::optional<Value> number = number_in(value->str());
  return number ? std::optional(number->as_double()) : std::nullopt;
}

// Names a row for people: its number in the table and the parameters in which rows differ.
class RowNames {
 public:
  RowNames(const Benchmark& benchmark, const Table& table, const std::vector<Record>& rows)
      : rows_(rows) {
    const std::vector<std::string> known = parameter_order(benchmark);
    for (const Column& column : table.columns) {
      const std::string& name = column.name.value;
      const bool varies = std::ranges::any_of(rows, [&](const Record& row) {
        const Value* first = rows.front().values.find(name);
        const Value* own = row.values.find(name);
        return first != nullptr && own != nullptr && !(*first == *own);
      });
      const bool parameter = contains(known, name);
      if (varies && parameter) parameters_.push_back(name);
    }
  }
  // With rows of several runs, the name includes the run's id.
  void add_run_id() { parameters_.insert(parameters_.begin(), "id"); }

  std::string name(size_t row) const {
    std::string text;
    for (const std::string& parameter : parameters_) {
      const Value* value = rows_[row].values.find(parameter);
      if (value == nullptr) continue;
      text += (text.empty() ? "" : ", ") + parameter + "=" + value->str();
    }
    return fmt::format("row {}{}", row + 1, text.empty() ? "" : " (" + text + ")");
  }

 private:
  const std::vector<Record>& rows_;
  std::vector<std::string> parameters_;
};

class ReferenceCheck {
 public:
  ReferenceCheck(const Benchmark& benchmark, const Table& table, Evaluator& evaluator,
                 Diagnostics& diagnostics, ResultTable& out)
      : table_(table),
        rows_(out.rows),
        names_(benchmark, table, out.rows),
        evaluator_(evaluator),
        diagnostics_(diagnostics),
        out_(out) {
    for (const Step& step : benchmark.steps) {
      if (!step.platform.empty()) platforms_.insert(step.platform);
    }
    if (!out.columns.empty() && out.columns.front().name.value == "id") names_.add_run_id();
  }

  void check(const Reference& reference) {
    const std::string key = value_key(table_, reference);
    std::vector<double>& values = out_.reference_values.emplace_back();
    if (!applies(reference)) return;
    miss_missing_rows(reference);
    const std::vector<size_t> positions =
        matching_rows_or_failed(where_of(reference), rows_, evaluator_, diagnostics_).rows;
    if (positions.empty()) {
      const std::string& where = reference.where.value;
      miss(reference, {key},
           fmt::format("no row{} has a value of '{}' to compare",
                       where.empty() ? "" : " with " + where, key));
      return;
    }
    std::vector<Record> chosen;
    for (const size_t position : positions) chosen.push_back(rows_[position]);
    std::set<std::string> known = known_names(chosen, nullptr);
    known.insert("x");
    for (Record& row : chosen) {
      row.values.set("x", Value(row.values.at(key)));
    }
    const std::string expression = condition_expression(reference.condition.value);
    const std::vector<std::string> names = names_read(expression);
    if (std::ranges::none_of(names, [&](const std::string& n) { return known.count(n) != 0; })) {
      no_condition(reference, "it uses no value of the row");
      return;
    }
    const std::vector<Evaluated> results = evaluate(expression, chosen, known, evaluator_);
    for (const Evaluated& one : results) {
      if (!one.present || !one.result.ok || one.type.rfind("bool", 0) == 0) continue;
      no_condition(reference, fmt::format("its value is {} ({}), not True or False",
                                          one.result.value, one.type));
      return;
    }
    can_be_evaluated_ = std::ranges::any_of(
        results, [](const Evaluated& one) { return one.present && one.result.ok; });
    for (size_t i = 0; i < chosen.size(); ++i) {
      const std::optional<double> number = compared_number(chosen[i].values.find(key));
      if (number && chosen[i].measured()) values.push_back(*number);
      compare(reference, key, positions[i], chosen[i], results[i]);
    }
  }

 private:
  // A row that is not there, because a workpackage before it failed or has not ended, has no value.
  void miss_missing_rows(const Reference& reference) {
    if (out_.missing.empty()) return;
    const std::vector<bool> chosen =
        may_choose(where_of(reference), rows_, out_.missing, evaluator_);
    int count = 0;
    const Record* first = nullptr;
    for (size_t i = 0; i < out_.missing.size(); ++i) {
      if (!chosen[i]) continue;
      if (count++ == 0) first = &out_.missing[i];
    }
    if (count == 0) return;
    const std::string others = count == 1 ? "" : fmt::format(", as are {} more", count - 1);
    miss(reference, {value_key(table_, reference)},
         fmt::format("a row is missing{}: workpackage {} ({}) {}", others, first->id, *first->step,
                     first->why_not_measured()));
  }

  void no_condition(const Reference& reference, const std::string& why) {
    diagnostics_.error(reference.condition.mark,
                       fmt::format("reference '{}' of '{}' is not a condition: {}",
                                   reference.condition.value, reference.column.value, why),
                       "compare the value, for example `< 20`, `10 .. 20` or `10 < x < 20`");
  }

  // A reference for another platform is no gate here, and the reader is told.
  bool applies(const Reference& reference) {
    const std::string& wanted = reference.platform.value;
    if (wanted.empty() || platforms_.count(wanted) != 0) return true;
    out_.notes.push_back(
        {"",
         fmt::format("reference {} {}{}: not checked: it is for platform '{}', and this is {}",
                     reference.column.value, reference.condition.value, source(reference), wanted,
                     platforms_.empty()
                         ? std::string("a workflow without platform")
                         : "'" + join({platforms_.begin(), platforms_.end()}, "', '") + "'")});
    return false;
  }

  void compare(const Reference& reference, const std::string& key, size_t position,
               const Record& row, const Evaluated& result) {
    const Value* value = row.values.find(key);
    const std::string name = names_.name(position);
    Missing at{key, static_cast<int>(position), row.id};
    if (row.state == State::expected) return;
    if (!row.measured()) {
      const std::string what =
          row.unfinished() && row.all_repeats > 1
              ? "its repeats have not all ended"
              : fmt::format("workpackage {} {}", row.id, row.why_not_measured());
      miss(reference, at, fmt::format("{}: no value of '{}' counts: {}", name, key, what));
    } else if (value != nullptr && value->nan()) {  // whatever the condition says of it
      miss(reference, at, fmt::format("{}: {} is nan, which is no value", name, key));
    } else if (value == nullptr || !result.present) {
      const std::string what = value == nullptr ? key : reference.condition.value;
      miss(reference, at, fmt::format("{}: there is no value of '{}' to compare", name, what));
    } else if (!result.result.ok) {
      at.not_evaluated = !can_be_evaluated_;
      miss(reference, at,
           fmt::format("{}: {} {} cannot be evaluated: {}", name, key, reference.condition.value,
                       result.result.error));
    } else if (!truth(result.result.value)) {
      const std::optional<double> number = compared_number(value);
      const std::string amount = number ? missed_by(reference.condition.value, *number) : "";
      miss(reference, at, fmt::format("{}: {} is {}", name, key, shown_value(table_, key, *value)),
           amount);
    } else if (reference.action == ReferenceAction::expect_fail) {
      out_.missed.push_back(
          {reference.condition.mark,
           fmt::format("{}: {} is {}, which meets {}{}; it was expected to miss it: leave out "
                       "`action: expect_fail`",
                       name, key, shown_value(table_, key, *value), reference.condition.value,
                       source(reference)),
           row.id,
           reference.on_fail.value,
           {},
           at.row,
           key});
    } else {
      ++out_.references_passed;
      out_.notes.push_back(
          {"", fmt::format("reference {} {}{}: pass, {} has {}", key, reference.condition.value,
                           source(reference), name, shown_value(table_, key, *value))});
    }
  }

  static std::string source(const Reference& reference) {
    return reference.note.value.empty() ? "" : " (" + reference.note.value + ")";
  }

  // The rows whose value misses. Without a row there is nothing to compare.
  struct Missing {
    std::string key;
    int row = -1, workpackage = -1;
    bool not_evaluated = false;  // in any row: nothing says that a value misses
  };

  // `amount`: see missed_by().
  void miss(const Reference& reference, const Missing& at, const std::string& what,
            const std::string& amount = {}) {
    const std::string text =
        fmt::format("{}; expected {}{}{}{}", what, reference.condition.value, source(reference),
                    amount.empty() ? "" : ", missed by ", amount);
    const bool expected = reference.action == ReferenceAction::expect_fail;
    if (expected && !at.not_evaluated) {
      out_.notes.push_back({"", "reference missed as expected: " + text});
      return;
    }
    std::vector<MissedReference>& list =
        reference.action == ReferenceAction::warn ? out_.warned : out_.missed;
    list.push_back({reference.condition.mark,
                    text,
                    at.workpackage,
                    reference.on_fail.value,
                    {},
                    at.row,
                    at.key});
  }

  const Table& table_;
  const std::vector<Record>& rows_;
  RowNames names_;
  Evaluator& evaluator_;
  Diagnostics& diagnostics_;
  ResultTable& out_;
  std::set<std::string> platforms_;  // of the benchmark's steps
  bool can_be_evaluated_ = false;    // the reference's condition, in some row
};

}  // namespace

std::set<size_t> rows_that_miss(const Table& table, const std::vector<Record>& rows,
                                Evaluator& evaluator, Diagnostics& diagnostics) {
  std::set<size_t> missing;
  for (const Reference& reference : table.references) {
    const std::string key = value_key(table, reference);
    for (const size_t i : matching_rows(where_of(reference), rows, evaluator, diagnostics).rows) {
      if (rows[i].values.find(key) == nullptr) missing.insert(i);
    }
  }
  return missing;
}

void check_references(const Benchmark& benchmark, const Table& table, Evaluator& evaluator,
                      Diagnostics& diagnostics, ResultTable& out) {
  ReferenceCheck check(benchmark, table, evaluator, diagnostics, out);
  for (const Reference& reference : table.references) check.check(reference);
}

}  // namespace tally
