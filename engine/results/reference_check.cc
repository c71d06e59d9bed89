#include "engine/results/reference_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
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
    return type_fault(reference, text);
  }

  // Whether a row may have a value of this name.
  bool is_name(const std::string& word) const {
    return names_.count(word) != 0 || starts_with(word, "jube_") || starts_with(word, "job_") ||
           is_match_value(benchmark_, word) || sample_name(benchmark_, word).has_value();
  }

 private:
  std::string bound_fault(const std::string& bound) const {
    if (bound.empty()) return "a number is missing";
    const std::optional<double> number = python_float(bound);
    if (number && !std::isfinite(*number))
      return fmt::format("no value is compared with {}", bound);
    static const std::set<std::string> constants = {"True", "False", "None"};
    if (!number && is_word(bound) && !is_name(bound) && constants.count(bound) == 0)
      return fmt::format("'{}' is neither a number nor the name of a value", bound);
    return {};
  }

  // The type of the reference's value, where the workflow says it once.
  std::optional<ValueType> type_of(const Reference& reference) const {
    if (!reference.of.empty()) return std::nullopt;
    const std::string& name = reference.column.value;
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

// A condition of the form NAME SIGN LITERAL. Other conditions are not looked at.
struct Comparison {
  std::string name, sign, literal;
};
std::optional<Comparison> comparison_of(const std::string& text) {
  for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"}) {
    const size_t at = text.find(sign);
    if (at == std::string::npos) continue;
    Comparison found{std::string(strip(text.substr(0, at))), sign,
                     std::string(strip(text.substr(at + std::string_view(sign).size())))};
    if (!found.name.empty() && found.name.front() == '$') found.name.erase(0, 1);
    if (is_word(found.name) && (python_float(found.literal) || is_quoted(found.literal)))
      return found;
    return std::nullopt;
  }
  return std::nullopt;
}

// Why `where` chooses no row, a clause; empty if it may choose one.
std::string where_fault(const Benchmark& benchmark, const ConditionCheck& conditions,
                        const std::string& where) {
  const std::string text(strip(where));
  if (text.empty()) return {};
  if (to_lower(text) == "false" || text == "0" || text == "None") return "it is false for each row";
  const std::optional<Comparison> comparison = comparison_of(text);
  if (!comparison) return {};
  const std::string& name = comparison->name;
  const std::string& sign = comparison->sign;
  const std::string& literal = comparison->literal;
  if (!conditions.is_name(name)) return fmt::format("'{}' is not the name of a value", name);
  const Parameter* parameter = constant_parameter(benchmark, name);
  if (parameter == nullptr) return {};
  if (parameter->type != ValueType::string && is_quoted(literal) && sign == "==")
    return fmt::format("'{}' is a number, and is compared with a text", name);
  const auto values = split_strip(parameter->value.value, parameter->separator);
  const bool possible = std::any_of(values.begin(), values.end(), [&](const std::string& value) {
    return compares(value, sign, literal);
  });
  return possible ? "" : fmt::format("'{}' is {}", name, join(values, ", "));
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
