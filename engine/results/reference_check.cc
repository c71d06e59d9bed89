#include "engine/results/reference_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/text.h"
#include "engine/python/number.h"
#include "engine/results/condition.h"
#include "engine/results/expressions.h"
#include "engine/results/table_names.h"
#include "engine/workflow/job_values.h"
#include "engine/workflow/sample_names.h"

namespace tally {
namespace {

// A text of letters, digits and underscores that does not begin with a digit.
bool is_word(const std::string& text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::all_of(text.begin(), text.end(), is_name_char);
}

bool is_quoted(const std::string& text) {
  return text.size() > 1 && (text.front() == '\'' || text.front() == '"') &&
         text.find(text.front(), 1) == text.size() - 1;
}

// The parts between a word such as " and ".
std::vector<std::string> split_at(const std::string& text, std::string_view word) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, from)) {
    parts.emplace_back(strip(text.substr(from, at - from)));
    from = at + word.size();
  }
  parts.emplace_back(strip(text.substr(from)));
  return parts;
}

// The names that an expression reads: words outside of quotes that are neither Python's own nor
// attributes, and `'$name'`. None where an expression names values of its own.
std::vector<std::string> names_read(const std::string& text) {
  std::vector<std::string> names;
  if (text.find(" for ") != std::string::npos || text.find("lambda") != std::string::npos)
    return names;
  char quote = '\0';
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (quote != '\0' && c == '\\') {
      i += 2;
      continue;
    }
    const bool begins = is_name_char(c) && (quote == '\0' || (i > 0 && text[i - 1] == '$'));
    if (!begins) {
      if (c == quote) {
        quote = '\0';
      } else if (quote == '\0' && (c == '\'' || c == '"')) {
        quote = c;
      }
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_name_char(text[end])) ++end;
    const std::string word = text.substr(i, end - i);
    const bool attribute = i > 0 && text[i - 1] == '.';
    const bool prefix =
        quote == '\0' && end < text.size() && (text[end] == '\'' || text[end] == '"');
    if (is_word(word) && !attribute && !prefix && !is_python_word(word)) names.push_back(word);
    i = end;
  }
  return names;
}

class ConditionCheck {
 public:
  ConditionCheck(const Benchmark& benchmark, const Table& table)
      : benchmark_(benchmark), table_(table) {
    for (const auto& [name, set] : benchmark.parameter_sets) {
      for (const Parameter& p : set.parameters) names_.insert(p.name.value);
    }
    for (const auto& [name, set] : benchmark.pattern_sets) {
      for (const Pattern& p : set.patterns) names_.insert(p.name.value);
    }
    for (const Column& column : table.columns) {
      names_.insert(column.name.value);
      names_.insert(column.column_title());
    }
    names_.insert({"x", "id", kStatusColumn});
  }

  // Why no value meets the condition, a clause; empty if some may.
  std::string fault(const Reference& reference) const {
    const std::string text(strip(reference.condition.value));
    const std::string expression = condition_expression(text);
    std::set<std::string> words;
    add_words(expression, words);
    if (std::none_of(words.begin(), words.end(),
                     [this](const std::string& word) { return is_name(word); }))
      return "it uses no value of the row";
    for (const std::string& bound : condition_bounds(text)) {
      if (std::string why = bound_fault(bound); !why.empty()) return why;
    }
    if (const std::optional<NumericCondition> bounds = numeric_condition(text)) {
      if (bounds->low > bounds->high) {
        return bounds->form == NumericCondition::Form::tolerance
                   ? "its tolerance is below 0"
                   : "its range ends before it begins";
      }
    }
    if (std::string why = unknown_name(expression); !why.empty()) return why;
    if (expression == text && !may_be_truth(text)) return "it is neither true nor false";
    return type_fault(reference, text);
  }

  // The first name in the expression that is not that of a value, a clause; empty if there is none.
  std::string unknown_name(const std::string& expression) const {
    for (const std::string& name : names_read(expression)) {
      if (!is_name(name)) return fmt::format("'{}' is not the name of a value", name);
    }
    return {};
  }

  // Whether a row may have a value of this name.
  bool is_name(const std::string& word) const {
    return names_.count(word) != 0 || starts_with(word, "jube_") || starts_with(word, "job_") ||
           is_match_value(benchmark_, word) || sample_name(benchmark_, word).has_value();
  }

 private:
  std::string bound_fault(const std::string& bound) const {
    if (bound.empty()) return "a number is missing";
    if (bound.find_first_not_of("0123456789,._+- ") == std::string::npos &&
        bound.find(',') != std::string::npos)
      return fmt::format("'{}' is not a number: it has a comma", bound);
    const std::optional<double> number = python_float(bound);
    if (number && !std::isfinite(*number))
      return fmt::format("no value is compared with {}", bound);
    static const std::set<std::string> constants = {"True", "False", "None"};
    if (!number && is_word(bound) && !is_name(bound) && constants.count(bound) == 0)
      return fmt::format("'{}' is neither a number nor the name of a value", bound);
    return {};
  }

  // Whether an expression may be true or false, and is not only a number.
  static bool may_be_truth(const std::string& text) {
    if (text.find_first_of("<>=!(") != std::string::npos) return true;
    std::set<std::string> words;
    add_words(text, words);
    return std::any_of(words.begin(), words.end(), [](const std::string& word) {
      static const std::set<std::string> truths = {"and", "or",   "not",   "in",
                                                   "is",  "True", "False", "if"};
      return truths.count(word) != 0;
    });
  }

  std::optional<ValueType> type_of(const Reference& reference) const {
    return reference.of.empty() ? type_of(reference.column.value) : std::nullopt;
  }

  // The type of the value of this name, where the workflow says it once.
  std::optional<ValueType> type_of(const std::string& name) const {
    std::set<ValueType> types;
    for (const auto& [set_name, set] : benchmark_.pattern_sets) {
      for (const Pattern& p : set.patterns) {
        if (p.name.value == name) types.insert(p.type);
      }
    }
    for (const auto& [set_name, set] : benchmark_.parameter_sets) {
      for (const Parameter& p : set.parameters) {
        if (p.name.value == name) types.insert(p.type);
      }
    }
    if (types.size() != 1) return std::nullopt;
    return *types.begin();
  }

  std::string type_fault(const Reference& reference, const std::string& text) const {
    const std::optional<ValueType> type = type_of(reference);
    if (std::string why = names_fault(reference, condition_expression(text)); !why.empty())
      return why;
    if (!type || is_computed(reference.column.value)) return {};
    const std::vector<std::string> bounds = condition_bounds(text);
    if (*type == ValueType::string) {
      if (!numeric_condition(text)) return {};
      return fmt::format("the type of '{}' is string, and a text is compared with a number",
                         reference.column.value);
    }
    if (starts_with(text, "!=") || bounds.size() != 1 || !is_quoted(bounds.front())) return {};
    return fmt::format("'{}' is a number, and is compared with a text", reference.column.value);
  }

  // Why two values of the row are never equal, one a number and the other a text.
  std::string names_fault(const Reference& reference, const std::string& expression) const {
    const std::vector<std::string> sides = split_at(expression, "==");
    if (sides.size() != 2 || !is_word(sides[0]) || !is_word(sides[1])) return {};
    std::vector<std::string> numbers, texts;
    for (const std::string& side : sides) {
      if (side == "x" && !reference.of.empty()) return {};
      const std::string& name = side == "x" ? reference.column.value : side;
      const std::optional<ValueType> type = type_of(name);
      if (!type || is_computed(name)) return {};
      (*type == ValueType::string ? texts : numbers).push_back(name);
    }
    if (numbers.size() != 1) return {};
    return fmt::format("'{}' is a number, and the type of '{}' is string", numbers[0], texts[0]);
  }

  bool is_computed(const std::string& name) const {
    return std::any_of(table_.columns.begin(), table_.columns.end(), [&](const Column& column) {
      const bool computed = !column.expression.value.empty() || !column.relative_to.empty() ||
                            column.statistic != Statistic::none;
      return computed && (column.name.value == name || column.column_title() == name);
    });
  }

  const Benchmark& benchmark_;
  const Table& table_;
  std::set<std::string> names_;
};

// The parameter of this name if its values are plain texts. Null if they are not known yet, or if
// something else may have the name.
const Parameter* constant_parameter(const Benchmark& benchmark, const std::string& name) {
  const Parameter* found = nullptr;
  for (const auto& [set_name, set] : benchmark.parameter_sets) {
    for (const Parameter& p : set.parameters) {
      if (p.name.value != name) continue;
      if (found != nullptr) return nullptr;
      found = &p;
    }
  }
  if (found == nullptr || found->mode != Mode::text || found->update != UpdateMode::never ||
      found->value.value.find('$') != std::string::npos || is_match_value(benchmark, name))
    return nullptr;
  // A key of the step may replace it.
  for (const Step& step : benchmark.steps) {
    const auto& own = step.kinds->value_names();
    if (std::binary_search(own.begin(), own.end(), std::string_view(name))) return nullptr;
  }
  return found;
}

bool compares(const std::string& value, const std::string& sign, const std::string& literal) {
  const std::string text = is_quoted(literal) ? literal.substr(1, literal.size() - 2) : literal;
  const std::optional<double> a = python_float(value), b = python_float(text);
  if (sign == "==") return a && b ? *a == *b : value == text;
  if (!a || !b || sign == "!=") return true;  // not looked at
  if (sign == "<=") return *a <= *b;
  if (sign == ">=") return *a >= *b;
  return sign == "<" ? *a < *b : *a > *b;
}

// A condition of the form NAME SIGN LITERAL, `NAME in (LITERAL, ...)` or `not NAME`. Other conditions
// are not looked at.
struct Comparison {
  std::string name, sign;
  std::vector<std::string> literals;
};

bool is_literal(const std::string& text) {
  return python_float(text).has_value() || is_quoted(text);
}

// The name of `n`, `$n`, `${n}` and `'$n'`.
std::string named(std::string text) {
  if (is_quoted(text) && text.find('$') != std::string::npos)
    text = text.substr(1, text.size() - 2);
  if (starts_with(text, "${") && text.back() == '}') return text.substr(2, text.size() - 3);
  return starts_with(text, "$") ? text.substr(1) : text;
}

std::optional<Comparison> comparison_of(const std::string& text) {
  if (starts_with(text, "not ")) {
    const Comparison found{named(std::string(strip(text.substr(4)))), "not", {}};
    return is_word(found.name) ? std::optional(found) : std::nullopt;
  }
  const size_t in = text.find(" in ");
  if (in != std::string::npos && text.find(" not ") == std::string::npos) {
    const std::string list(strip(text.substr(in + 4)));
    Comparison found{named(std::string(strip(text.substr(0, in)))), "in", {}};
    if (list.size() < 2 || (list.front() != '(' && list.front() != '[')) return std::nullopt;
    for (const std::string& one : split_strip(list.substr(1, list.size() - 2), ",")) {
      if (!one.empty()) found.literals.push_back(one);
    }
    const bool known = std::all_of(found.literals.begin(), found.literals.end(), is_literal);
    const bool is_list = list.front() == '[' || found.literals.size() != 1;
    return known && is_list && is_word(found.name) ? std::optional(found) : std::nullopt;
  }
  for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"}) {
    const size_t at = text.find(sign);
    if (at == std::string::npos) continue;
    const Comparison found{named(std::string(strip(text.substr(0, at)))),
                           sign,
                           {std::string(strip(text.substr(at + std::string_view(sign).size())))}};
    if (is_word(found.name) && is_literal(found.literals[0])) return found;
    return std::nullopt;
  }
  return std::nullopt;
}

bool meets(const std::string& value, const Comparison& comparison) {
  if (comparison.sign == "not") return value.empty() || python_float(value).value_or(1) == 0;
  if (comparison.sign != "in") return compares(value, comparison.sign, comparison.literals[0]);
  return std::any_of(comparison.literals.begin(), comparison.literals.end(),
                     [&](const std::string& one) { return compares(value, "==", one); });
}

// Whether the part is one of its own: no parentheses or quotes begin or end in it alone.
bool is_balanced(const std::string& text) {
  const auto count = [&](char c) { return std::count(text.begin(), text.end(), c); };
  return count('(') == count(')') && count('\'') % 2 == 0 && count('"') % 2 == 0;
}

// Why conditions joined by `and` hold for no row, a clause; empty if they may.
std::string conjunction_fault(const Benchmark& benchmark, const std::string& text) {
  std::map<std::string, std::vector<Comparison>> by_name;
  for (const std::string& part : split_at(text, " and ")) {
    if (!is_balanced(part)) return {};
    if (std::optional<Comparison> found = comparison_of(part))
      by_name[found->name].push_back(*std::move(found));
  }
  for (const auto& [name, comparisons] : by_name) {
    const Parameter* parameter = constant_parameter(benchmark, name);
    // A value of --set has no place in the file: the file is right, and this run shows a part of it.
    if (parameter == nullptr || !parameter->value.mark.known()) continue;
    for (const Comparison& one : comparisons) {
      if (parameter->type != ValueType::string && one.sign == "==" && is_quoted(one.literals[0]) &&
          text.find("'$") == std::string::npos && text.find("\"$") == std::string::npos)
        return fmt::format("'{}' is a number, and is compared with a text", name);
    }
    const auto values = split_strip(parameter->value.value, parameter->separator);
    const bool possible = std::any_of(values.begin(), values.end(), [&](const std::string& value) {
      return std::all_of(comparisons.begin(), comparisons.end(),
                         [&](const Comparison& one) { return meets(value, one); });
    });
    if (!possible) return fmt::format("'{}' is {}", name, join(values, ", "));
  }
  return {};
}

// Why `where` chooses no row, a clause; empty if it may choose one.
std::string where_fault(const Benchmark& benchmark, const ConditionCheck& conditions,
                        const std::string& where) {
  const std::string text(strip(where));
  if (text.empty()) return {};
  if (to_lower(text) == "false" || text == "0" || text == "None") return "it is false for each row";
  if (const std::string why = conditions.unknown_name(text);
      !why.empty() && to_lower(text) != "true")
    return why;
  if (text.find(" if ") != std::string::npos) return {};
  std::string why;
  for (const std::string& either : split_at(text, " or ")) {
    why = conjunction_fault(benchmark, either);
    if (why.empty()) return {};
  }
  return why;
}

}  // namespace

void check_reference_conditions(const Benchmark& benchmark, Diagnostics& diagnostics) {
  for (const Result& result : benchmark.results) {
    for (const auto& output : result.outputs) {
      const auto* table = std::get_if<Table>(&output);
      if (table == nullptr) continue;
      const ConditionCheck conditions(benchmark, *table);
      for (const Reference& reference : table->references) {
        if (const std::string why = conditions.fault(reference); !why.empty()) {
          diagnostics.error(reference.condition.mark,
                            fmt::format("no value can meet the reference '{}' of '{}': {}",
                                        reference.condition.value, reference.column.value, why),
                            "write, for example, `<= 560`, `10 .. 20` or `34000 +- 5%`");
        }
        if (const std::string why = where_fault(benchmark, conditions, reference.where.value);
            !why.empty()) {
          diagnostics.error(reference.where.mark,
                            fmt::format("the reference of '{}' chooses no row by '{}': {}",
                                        reference.column.value, reference.where.value, why),
                            "correct `where`, or give the reference a `tag`");
        }
      }
    }
  }
}

}  // namespace tally
