#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/report/columns.h"
#include "engine/report/expressions.h"
#include "engine/report/python_format.h"

namespace tally {
namespace {

// "<= 560" and the like as a Python expression over x; anything else is one already.
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
  size_t width = 2;
  if (plus == std::string::npos) plus = text.find("\xC2\xB1");  // the sign itself
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

std::string shown_value(const Table& table, const std::string& name, const Value& value) {
  std::string text, error;
  for (const Column& column : table.columns) {
    if (column.name.value != name || column.format.empty()) continue;
    if (format_cell(value, column.format, &text, &error)) return text;
  }
  return value.str();
}

}  // namespace

void check_references(const Table& table, const std::vector<Record>& rows, Evaluator& evaluator,
                      Diagnostics& diagnostics, RenderedResult& out) {
  for (const Reference& reference : table.references) {
    std::vector<Record> chosen = rows;
    apply_filter(reference.where, chosen, evaluator, diagnostics);
    std::set<std::string> known = known_names(chosen, nullptr);
    for (Record& row : chosen) {
      auto found = row.values.find(reference.column.value);
      if (found != row.values.end()) row.values["x"] = found->second;
    }
    known.insert("x");
    std::vector<Evaluated> results =
        evaluate(condition_expression(reference.condition.value), chosen, known, evaluator);
    std::string note = reference.note.value.empty() ? "" : " (" + reference.note.value + ")";
    std::string what = reference.column.value + " " + reference.condition.value;
    size_t absent = 0;
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (!results[i].present) {
        ++absent;
        continue;
      }
      if (!results[i].result.ok) {
        diagnostics.warning(reference.condition.mark,
                            fmt::format("the reference \"{}\" could not be evaluated: {}", what,
                                        results[i].result.error));
        break;
      }
      bool passed = truth(results[i].result.value);
      (passed ? out.references_passed : out.references_failed) += 1;
      const std::string& name = reference.column.value;
      out.notes.push_back(fmt::format("reference {}{}: {}, it is {}", what, note,
                                      passed ? "pass" : "FAIL",
                                      shown_value(table, name, chosen[i].values[name])));
    }
    if (absent == chosen.size()) {
      out.notes.push_back(fmt::format("reference {}{}: no row has a value to compare", what, note));
    }
  }
}

}  // namespace tally
