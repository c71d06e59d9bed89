#include "engine/report/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/report/python_format.h"

namespace tally {
namespace {

using Values = std::map<std::string, Value>;

bool word_char(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 128;
}

// A Python literal of the value.
std::string literal(const Value& value) {
  if (value.none()) return "None";
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) {
    std::string number = value.str();
    bool plain = number.find_first_not_of("0123456789.+-e") == std::string::npos;
    return plain ? number : "float('" + number + "')";
  }
  std::string out = "'";
  for (char c : *text) {
    if (c == '\'' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\0') {
      out += "\\0";
    } else {
      out += c;
    }
  }
  return out + "'";
}

bool keyword(const std::string& word) {
  static const std::set<std::string> words = {"and",  "or",     "not", "in",   "is",    "if",
                                              "else", "lambda", "for", "True", "False", "None"};
  return words.count(word) != 0;
}

// The names an expression uses: $name, ${name} and bare words that are no attribute (x.real) and
// stand in no string.
std::set<std::string> names_in(const std::string& expression) {
  std::set<std::string> names;
  for (const std::string& name : referenced_names(expression)) names.insert(name);
  char quote = '\0';
  for (size_t i = 0; i < expression.size();) {
    char c = expression[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
      ++i;
    } else if (c == '\'' || c == '"') {
      quote = c;
      ++i;
    } else if (word_char(c)) {
      size_t end = i;
      while (end < expression.size() && word_char(expression[end])) ++end;
      bool attribute = i > 0 && expression[i - 1] == '.';
      bool starts_well = (c < '0' || c > '9') && !keyword(expression.substr(i, end - i));
      if (!attribute && starts_well) names.insert(expression.substr(i, end - i));
      i = end;
    } else {
      ++i;
    }
  }
  return names;
}

// '$name' and "${name}", alone in quotes, become str(name): a value with a quote in it is then no
// different from others.
std::string unquote_names(const std::string& expression, const Values& values) {
  std::string out;
  for (size_t i = 0; i < expression.size(); ++i) {
    char quote = expression[i];
    size_t end = quote == '\'' || quote == '"' ? expression.find(quote, i + 1) : std::string::npos;
    if (end == std::string::npos) {
      out += quote;
      continue;
    }
    std::string inside = expression.substr(i + 1, end - i - 1);
    std::string name = inside.substr(0, 1) == "$" ? inside.substr(1) : std::string();
    if (name.size() > 2 && name.front() == '{' && name.back() == '}') {
      name = name.substr(1, name.size() - 2);
    }
    bool whole = !name.empty() && std::all_of(name.begin(), name.end(), word_char);
    out +=
        whole && values.count(name) != 0 ? "str(" + name + ")" : expression.substr(i, end - i + 1);
    i = end;
  }
  return out;
}

// An expression with $names replaced and bare names bound to the row's values. Empty when the row
// lacks a value that a $name or bare name of `known` asks for.
std::string bind(const std::string& written, const Values& values,
                 const std::set<std::string>& known) {
  std::string expression = unquote_names(written, values);
  std::string parameters;
  std::string arguments;
  for (const std::string& name : names_in(expression)) {
    auto found = values.find(name);
    if (found == values.end() || found->second.none()) {
      if (known.count(name) != 0) return {};
      continue;
    }
    parameters += (parameters.empty() ? "" : ", ") + name;
    arguments += (arguments.empty() ? "" : ", ") + literal(found->second);
  }
  std::string text;
  std::map<std::string, std::string> texts;
  text = substitute(expression, [&](std::string_view name) -> const std::string* {
    auto found = values.find(std::string(name));
    if (found == values.end()) return nullptr;
    return &texts.insert_or_assign(found->first, found->second.str()).first->second;
  });
  if (parameters.empty()) return text;
  return fmt::format("(lambda {}: ({}))({})", parameters, text, arguments);
}

// What Python printed, with the type it must have had.
Value typed(const std::string& text) {
  if (text == "None") return {};
  bool whole = !text.empty() &&
               text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0) == std::string::npos &&
               text != "-";
  if (whole && text.size() < 19) return {std::stoll(text)};
  std::optional<double> number = python_float(text);
  if (number && !whole) return {*number};
  return {text};
}

// All names that any row has a value for, or could have had.
std::set<std::string> known_names(const std::vector<Record>& rows, const Records* records) {
  std::set<std::string> names;
  for (const Record& row : rows) {
    for (const auto& [name, value] : row.values) names.insert(name);
  }
  if (records != nullptr) {
    for (const auto& [name, type] : records->types) names.insert(name);
  }
  return names;
}

struct Evaluated {
  bool present = false;  // the row had every value that was asked for
  Evaluation result;
};

std::vector<Evaluated> evaluate(const std::string& expression, const std::vector<Record>& rows,
                                const std::set<std::string>& known, Evaluator& evaluator) {
  std::vector<Evaluated> out(rows.size());
  std::vector<std::string> expressions;
  std::vector<size_t> which;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string bound = bind(expression, rows[i].values, known);
    if (bound.empty()) continue;
    expressions.push_back(std::move(bound));
    which.push_back(i);
  }
  if (expressions.empty()) return out;
  std::vector<Evaluation> results = evaluator.evaluate(Mode::python, expressions);
  for (size_t i = 0; i < which.size(); ++i) out[which[i]] = {true, std::move(results[i])};
  return out;
}

bool truth(const std::string& text) {
  return !(text == "False" || text == "0" || text == "0.0" || text == "None" || text.empty() ||
           text == "[]" || text == "()" || text == "{}");
}

// Parameters of the input that follow from no other: those a baseline row must share.
std::set<std::string> free_parameters(const Benchmark& benchmark) {
  std::set<std::string> names;
  for (const auto& [set_name, set] : benchmark.parameter_sets) {
    for (const Parameter& parameter : set.parameters) {
      if (!has_reference(parameter.value.value)) names.insert(parameter.name.value);
    }
  }
  return names;
}

std::string describe(const std::vector<std::pair<Text, Text>>& conditions) {
  std::string text;
  for (const auto& [name, value] : conditions) {
    text += (text.empty() ? "" : ", ") + name.value + "=" + value.value;
  }
  return text;
}

bool same(const Values& values, const std::string& name, const std::string& wanted) {
  auto found = values.find(name);
  if (found == values.end()) return false;
  if (found->second.str() == wanted) return true;
  std::optional<double> number = python_float(wanted);
  std::optional<double> own = python_float(found->second.str());
  return number && own && *number == *own;
}

void relate(const Benchmark& benchmark, const Column& column, std::vector<Record>& rows,
            const std::vector<Value>& plain) {
  std::set<std::string> free = free_parameters(benchmark);
  for (const auto& [name, value] : column.relative_to) free.erase(name.value);
  auto key = [&](const Record& row) {
    std::string text;
    for (const std::string& name : free) {
      auto found = row.values.find(name);
      if (found != row.values.end()) text += name + '=' + found->second.str() + '\0';
    }
    return text;
  };
  std::map<std::string, size_t> baseline;
  for (size_t i = 0; i < rows.size(); ++i) {
    bool here = std::all_of(
        column.relative_to.begin(), column.relative_to.end(),
        [&](const auto& c) { return same(rows[i].values, c.first.value, c.second.value); });
    if (here && plain[i].number()) baseline.try_emplace(key(rows[i]), i);
  }
  const std::string& title = column.title.empty() ? column.name.value : column.title;
  for (size_t i = 0; i < rows.size(); ++i) {
    Value value;
    auto found = baseline.find(key(rows[i]));
    if (found == baseline.end()) {
      rows[i].notes.push_back(fmt::format("'{}' is empty: there is no baseline row with {}", title,
                                          describe(column.relative_to)));
    } else if (plain[i].number() && plain[found->second].as_double() != 0) {
      value = {plain[i].as_double() / plain[found->second].as_double()};
    }
    rows[i].values[column_key(column)] = value;
  }
}

}  // namespace

std::string column_key(const Column& column) {
  const std::string& name = column.name.value;
  if (column.relative_to.empty() || !column.expression.value.empty()) return name;
  return column.title.empty() || column.title == name ? name + "_relative" : column.title;
}

void add_derived_columns(const Benchmark& benchmark, const std::vector<Column>& columns,
                         const Records& records, std::vector<Record>& rows, Evaluator& evaluator,
                         Diagnostics& diagnostics) {
  for (const Column& column : columns) {
    bool relative = !column.relative_to.empty();
    if (column.expression.value.empty() && !relative) continue;
    std::vector<Value> values(rows.size());
    if (column.expression.value.empty()) {
      for (size_t i = 0; i < rows.size(); ++i) {
        auto found = rows[i].values.find(column.name.value);
        if (found != rows[i].values.end()) values[i] = found->second;
      }
    } else {
      std::set<std::string> known = known_names(rows, &records);
      known.erase(column.name.value);
      std::vector<Evaluated> results = evaluate(column.expression.value, rows, known, evaluator);
      size_t failed = 0;
      std::string why;
      for (size_t i = 0; i < rows.size(); ++i) {
        if (results[i].present && results[i].result.ok) values[i] = typed(results[i].result.value);
        if (results[i].present && !results[i].result.ok && failed++ == 0) {
          why = results[i].result.error;
        }
      }
      if (failed != 0) {
        diagnostics.warning(column.expression.mark,
                            fmt::format("column '{}' could not be computed in {} of {} rows: {}",
                                        column.name.value, failed, rows.size(), why));
      }
    }
    if (relative) {
      relate(benchmark, column, rows, values);
      continue;
    }
    for (size_t i = 0; i < rows.size(); ++i) rows[i].values[column.name.value] = values[i];
  }
}

void apply_filter(const Text& filter, std::vector<Record>& rows, Evaluator& evaluator,
                  Diagnostics& diagnostics) {
  if (strip(filter.value).empty() || rows.empty()) return;
  std::vector<Evaluated> results =
      evaluate(filter.value, rows, known_names(rows, nullptr), evaluator);
  std::vector<Record> kept;
  size_t failed = 0;
  std::string why;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Evaluated& e = results[i];
    if (e.present && !e.result.ok && failed++ == 0) why = e.result.error;
    if (e.present && e.result.ok && truth(e.result.value)) kept.push_back(std::move(rows[i]));
  }
  if (failed != 0) {
    diagnostics.error(filter.mark,
                      fmt::format("the filter \"{}\" could not be evaluated for {} of {} "
                                  "rows: {}",
                                  filter.value, failed, rows.size(), why));
  }
  rows = std::move(kept);
}

namespace {

// JUBE's comparison of rows: the first key in which they differ decides, and with None, or a number
// and a string, neither is smaller. That is no ordering, so the algorithm shows: this is what
// Python's sort does with up to 63 rows (the run there is, then insertion), and a merge beyond.
class RowOrder {
 public:
  explicit RowOrder(const std::vector<std::string>& keys) : keys_(keys) {}
  bool operator()(const Record& a, const Record& b) const {
    for (const std::string& key : keys_) {
      const Value& x = at(a, key);
      const Value& y = at(b, key);
      if (x == y) continue;
      return less(x, y);
    }
    return false;
  }

 private:
  static const Value& at(const Record& row, const std::string& key) {
    static const Value none;
    auto found = row.values.find(key);
    return found == row.values.end() ? none : found->second;
  }
  const std::vector<std::string>& keys_;
};

using Order = std::vector<size_t>;

void insertion_sort(Order& order, size_t from, size_t to, size_t sorted,
                    const std::vector<Record>& rows, const RowOrder& before) {
  for (size_t i = sorted; i < to; ++i) {
    size_t pivot = order[i];
    size_t low = from;
    size_t high = i;
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (before(rows[pivot], rows[order[middle]])) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    for (size_t j = i; j > low; --j) order[j] = order[j - 1];
    order[low] = pivot;
  }
}

// The run at `from`: ascending, or strictly descending and then turned round. Returns its end.
size_t take_run(Order& order, size_t from, size_t to, const std::vector<Record>& rows,
                const RowOrder& before) {
  size_t end = from + 1;
  if (end >= to) return to;
  bool down = before(rows[order[end]], rows[order[end - 1]]);
  ++end;
  while (end < to && before(rows[order[end]], rows[order[end - 1]]) == down) ++end;
  if (down) {
    std::reverse(order.begin() + static_cast<std::ptrdiff_t>(from),
                 order.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return end;
}

}  // namespace

void sort_rows(const std::vector<std::string>& keys, std::vector<Record>& rows) {
  if (keys.empty() || rows.size() < 2) return;
  RowOrder before(keys);
  Order order(rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  constexpr size_t kBlock = 64;
  if (rows.size() < kBlock) {
    size_t sorted = take_run(order, 0, order.size(), rows, before);
    insertion_sort(order, 0, order.size(), sorted, rows, before);
  } else {
    for (size_t from = 0; from < order.size(); from += kBlock) {
      insertion_sort(order, from, std::min(from + kBlock, order.size()), from + 1, rows, before);
    }
    Order merged(order.size());
    for (size_t width = kBlock; width < order.size(); width *= 2) {
      for (size_t from = 0; from < order.size(); from += 2 * width) {
        size_t middle = std::min(from + width, order.size());
        size_t to = std::min(from + 2 * width, order.size());
        size_t i = from;
        size_t j = middle;
        for (size_t k = from; k < to; ++k) {
          bool right = i == middle || (j < to && before(rows[order[j]], rows[order[i]]));
          merged[k] = order[right ? j++ : i++];
        }
      }
      std::swap(order, merged);
    }
  }
  std::vector<Record> sorted;
  sorted.reserve(rows.size());
  for (size_t i : order) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

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

}  // namespace

namespace {

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
