#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/text.h"
#include "engine/python/literal.h"
#include "engine/python/python_format.h"
#include "engine/results/columns.h"
#include "engine/results/expressions.h"

namespace tally {
namespace {

// The name of the reference's values in a row.
std::string value_key(const Table& table, const Reference& reference) {
  if (reference.column_index < 0) return reference.column.value;
  return column_key(table.columns[static_cast<size_t>(reference.column_index)]);
}

std::string shown_value(const Table& table, const std::string& key, const Value& value) {
  std::string text, error;
  for (const Column& column : table.columns) {
    if (column_key(column) != key || column.format.empty()) continue;
    if (format_cell(value, column.format, true, &text, &error)) return text;
  }
  return value.str();
}

// Whether the value is the one a derived pattern has when it could not be computed.
bool is_nothing(const Value* value) {
  if (value == nullptr) return true;
  const auto* number = std::get_if<double>(&value->data);
  const auto* text = std::get_if<std::string>(&value->data);
  return (number != nullptr && std::isnan(*number)) || (text != nullptr && text->empty());
}

const Value* find_value(const Record& row, const std::string& key) {
  const auto found = row.values.find(key);
  return found == row.values.end() || found->second.none() ? nullptr : &found->second;
}

// Names a row for people: its number in the table and the parameters in which rows differ.
class RowNames {
 public:
  RowNames(const Benchmark& benchmark, const Table& table, const std::vector<Record>& rows)
      : rows_(rows) {
    for (const Column& column : table.columns) {
      const std::string& name = column.name.value;
      const bool varies = std::any_of(rows.begin(), rows.end(), [&](const Record& row) {
        const Value* first = find_value(rows.front(), name);
        const Value* own = find_value(row, name);
        return first != nullptr && own != nullptr && !(*first == *own);
      });
      if (varies && is_parameter(benchmark, name)) parameters_.push_back(name);
    }
  }
  // With rows of several runs, the name includes the run's id.
  void add_run_id() { parameters_.insert(parameters_.begin(), "id"); }

  std::string name(size_t row) const {
    std::string text;
    for (const std::string& parameter : parameters_) {
      const Value* value = find_value(rows_[row], parameter);
      if (value == nullptr) continue;
      text += (text.empty() ? "" : ", ") + parameter + "=" + value->str();
    }
    return fmt::format("row {}{}", row + 1, text.empty() ? "" : " (" + text + ")");
  }

 private:
  static bool is_parameter(const Benchmark& benchmark, const std::string& name) {
    return std::any_of(
        benchmark.parameter_sets.begin(), benchmark.parameter_sets.end(), [&](const auto& entry) {
          const auto& list = entry.second.parameters;
          return std::any_of(list.begin(), list.end(),
                             [&](const Parameter& p) { return p.name.value == name; });
        });
  }

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
    if (!out.columns.empty() && out.columns.front().name.value == "id") names_.add_run_id();
  }

  void check(const Reference& reference) {
    const std::string key = value_key(table_, reference);
    const std::vector<size_t> places =
        matching_rows(reference.where, rows_, evaluator_, diagnostics_);
    if (places.empty()) {
      const std::string& where = reference.where.value;
      miss(reference, fmt::format("no row{} has a value of '{}' to compare",
                                  where.empty() ? "" : " with " + where, key));
      return;
    }
    std::vector<Record> chosen;
    for (const size_t place : places) chosen.push_back(rows_[place]);
    std::set<std::string> known = known_names(chosen, nullptr);
    known.insert("x");
    for (Record& row : chosen) {
      row.values.erase("x");
      if (const Value* value = find_value(row, key)) row.values["x"] = Value(*value);
    }
    const std::vector<Evaluated> results =
        evaluate(condition_expression(reference.condition.value), chosen, known, evaluator_);
    for (size_t i = 0; i < chosen.size(); ++i)
      compare(reference, key, places[i], chosen[i], results[i]);
  }

 private:
  void compare(const Reference& reference, const std::string& key, size_t place, const Record& row,
               const Evaluated& result) {
    const Value* value = find_value(row, key);
    const std::string name = names_.name(place);
    if (row.state == State::expected && is_nothing(value)) return;
    if (row.failed()) {
      miss(reference, fmt::format("{}: no value of '{}' counts: workpackage {} {}", name, key,
                                  row.id, row.state == State::lost ? "was lost" : "failed"));
    } else if (value == nullptr || !result.present) {
      const std::string what = value == nullptr ? key : reference.condition.value;
      miss(reference, fmt::format("{}: there is no value of '{}' to compare", name, what));
    } else if (!result.result.ok) {
      miss(reference, fmt::format("{}: {} {} cannot be evaluated: {}", name, key,
                                  reference.condition.value, result.result.error));
    } else if (truth(result.result.value)) {
      ++out_.references_passed;
      out_.notes.push_back(
          {"", fmt::format("reference {} {}{}: pass, {} has {}", key, reference.condition.value,
                           source(reference), name, shown_value(table_, key, *value))});
    } else {
      miss(reference, fmt::format("{}: {} is {}", name, key, shown_value(table_, key, *value)));
    }
  }

  static std::string source(const Reference& reference) {
    return reference.note.value.empty() ? "" : " (" + reference.note.value + ")";
  }

  void miss(const Reference& reference, const std::string& what) {
    out_.missed.push_back(
        {reference.condition.mark,
         fmt::format("{}; expected {}{}", what, reference.condition.value, source(reference))});
  }

  const Table& table_;
  const std::vector<Record>& rows_;
  RowNames names_;
  Evaluator& evaluator_;
  Diagnostics& diagnostics_;
  ResultTable& out_;
};

}  // namespace

std::string condition_expression(const std::string& condition) {
  std::string text(strip(condition));
  for (const char* sign : {"<=", ">=", "==", "!=", "<", ">"}) {
    if (starts_with(text, sign)) return "x " + text;
  }
  size_t range = text.find("..");
  if (range != std::string::npos) {
    return fmt::format("({}) <= x <= ({})", text.substr(0, range), text.substr(range + 2));
  }
  size_t plus = text.find("+-");
  const size_t width = 2;
  if (plus == std::string::npos) plus = text.find("\xC2\xB1");  // the sign itself: ±
  if (plus != std::string::npos) {
    std::string middle(strip(text.substr(0, plus)));
    std::string tolerance(strip(text.substr(plus + width)));
    if (!tolerance.empty() && tolerance.back() == '%') {
      tolerance.pop_back();
      tolerance = fmt::format("abs({}) * ({}) / 100", middle, tolerance);
    }
    return fmt::format("abs(x - ({})) <= ({})", middle, tolerance);
  }
  if (python_float(text)) return "x == " + text;
  return text;
}

void check_references(const Benchmark& benchmark, const Table& table, Evaluator& evaluator,
                      Diagnostics& diagnostics, ResultTable& out) {
  ReferenceCheck check(benchmark, table, evaluator, diagnostics, out);
  for (const Reference& reference : table.references) check.check(reference);
}

}  // namespace tally
