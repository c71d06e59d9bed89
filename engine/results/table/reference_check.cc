#include "engine/results/table/early_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/text.h"
#include "engine/python/guarded_literal.h"
#include "engine/python/tokens.h"
#include "engine/python/value.h"
#include "engine/results/read/patterns.h"
#include "engine/results/table/condition.h"
#include "engine/results/table/known_truth.h"
#include "engine/workflow/table_names.h"

namespace tally {
namespace {

bool is_one_word(const std::string& text) {
  const std::vector<PythonToken> tokens = tokens_of(text);
  return tokens.size() == 1 && tokens.front().kind == TokenKind::word;
}

// The names of values that an expression reads. None where it names values of its own.
std::vector<std::string> values_read(const std::string& text) {
  if (makes_names(tokens_of(text))) return {};
  std::vector<std::string> names = names_read(text);
  std::erase_if(names, is_python_word);
  return names;
}

// Whether the expression uses the name as a module or function of Python's, and not as a value:
// math.sqrt(x), but not x < time.
bool is_pythons(const std::string& text, const std::string& name) {
  if (!is_python_name(name)) return false;
  std::vector<PythonToken> tokens = tokens_of(text);
  std::erase_if(tokens, [](const PythonToken& token) { return token.kind == TokenKind::space; });
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != TokenKind::word || tokens[i].text != name) continue;
    const std::string_view next = i + 1 < tokens.size() ? tokens[i + 1].text : std::string_view();
    if (next != "." && next != "(") return false;
  }
  return true;
}

// The parameter of this name if its values are plain texts. Null if they are not known yet, or if
// something else may have the name.
const Parameter* constant_parameter(const Benchmark& benchmark, const std::string& name);

// Whether a value without a type may be a number beside numbers: of a pattern, and of a parameter
// that has such a value.
bool may_be_number(const Benchmark& benchmark, const std::string& name) {
  const Parameter* parameter = constant_parameter(benchmark, name);
  if (parameter == nullptr) return true;
  const std::vector<std::string> values = split_strip(parameter->value.value, parameter->separator);
  return std::ranges::any_of(values,
                             [](const std::string& value) { return number_in(value).has_value(); });
}

class ConditionCheck {
 public:
  ConditionCheck(const Benchmark& benchmark, const Table& table)
      : benchmark_(benchmark), table_(table) {
    for (const Parameter& p : all_parameters(benchmark)) names_.insert(p.name.value);
    for (const Pattern& p : all_patterns(benchmark)) names_.insert(p.name.value);
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
    if (std::ranges::none_of(names_read(expression),
                             [this](const std::string& name) { return is_name(name); })) {
      const std::string why = unknown_name(expression);
      return why.empty() ? "it uses no value of the row" : why;
    }
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
    const KnownValues values = [&](const std::string& name) {
      if (name != "x") return known_type(name);
      return reference.of.empty() ? known_type(reference.column.value) : KnownValue();
    };
    // Also of one that begins with its sign: >> 1.
    if (!may_be_truth(expression) || is_no_truth(expression, values))
      return "it is neither true nor false";
    return type_fault(text, values);
  }

  // The first name in the expression that is not that of a value, a clause; empty if there is none.
  std::string unknown_name(const std::string& expression) const {
    for (const std::string& name : values_read(expression)) {
      if (!is_name(name) && !is_pythons(expression, name))
        return fmt::format("'{}' is not the name of a value", name);
    }
    return {};
  }

  // Whether a row may have a value of this name.
  bool is_name(const std::string& word) const {
    return names_.count(word) != 0 || starts_with(word, "jube_") || starts_with(word, "job_") ||
           is_match_value(benchmark_, word) || sample_name(benchmark_, word).has_value();
  }

  // Whether the value of this name is a number or a text.
  KnownValue known_type(const std::string& name) const {
    KnownValue value;
    value.name = name;
    const std::optional<ValueType> type = type_of(name);
    if (!type || is_computed(name)) return value;
    const bool text = *type == ValueType::string;
    value.no_truth = text;
    if (text && may_be_number(benchmark_, name)) return value;
    value.kind = text ? KnownValue::Kind::text : KnownValue::Kind::number;
    return value;
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
    if (!number && is_one_word(bound) && !is_name(bound) && constants.count(bound) == 0)
      return fmt::format("'{}' is neither a number nor the name of a value", bound);
    return {};
  }

  // Whether an expression may be true or false, and is not only a number.
  static bool may_be_truth(const std::string& text) {
    if (text.find_first_of("<>=!(") != std::string::npos) return true;
    std::set<std::string> words;
    add_words(text, words);
    return std::ranges::any_of(words, [](const std::string& word) {
      static const std::set<std::string> truths = {"and", "or",   "not",   "in",
                                                   "is",  "True", "False", "if"};
      return truths.count(word) != 0;
    });
  }

  // The type of the value of this name, where the workflow says it once.
  std::optional<ValueType> type_of(const std::string& name) const {
    std::set<ValueType> types;
    for (const Pattern& p : all_patterns(benchmark_)) {
      if (p.name.value == name) types.insert(p.type);
    }
    for (const Parameter& p : all_parameters(benchmark_)) {
      if (p.name.value == name) types.insert(p.type);
    }
    if (types.size() != 1) return std::nullopt;
    return *types.begin();
  }

  // Why no value meets the condition, whatever the numbers and texts of a row are. A tolerance is
  // looked at as the comparison with its middle.
  static std::string type_fault(const std::string& text, const KnownValues& values) {
    const std::optional<NumericCondition> bounds = numeric_condition(text);
    const bool tolerance = bounds && bounds->form == NumericCondition::Form::tolerance;
    std::string mixed;
    const Truth truth =
        known_truth(tolerance ? "x == 0" : condition_expression(text), values, &mixed);
    return truth == Truth::no ? mixed : std::string();
  }

  bool is_computed(const std::string& name) const {
    return std::ranges::any_of(table_.columns, [&](const Column& column) {
      const bool computed = column.computed() || column.statistic != nullptr;
      return computed && (column.name.value == name || column.column_title() == name);
    });
  }

  const Benchmark& benchmark_;
  const Table& table_;
  std::set<std::string> names_;
};

const Parameter* constant_parameter(const Benchmark& benchmark, const std::string& name) {
  const Parameter* found = nullptr;
  for (const Parameter& p : all_parameters(benchmark)) {
    if (p.name.value != name) continue;
    if (found != nullptr) return nullptr;
    found = &p;
  }
  if (found == nullptr || found->mode != Mode::text || found->update != UpdateMode::never ||
      has_dollar(found->value.value) || is_match_value(benchmark, name))
    return nullptr;
  // A key of the step may replace it.
  for (const Step& step : benchmark.steps) {
    const auto& own = step.kinds->value_names();
    if (std::binary_search(own.begin(), own.end(), std::string_view(name))) return nullptr;
  }
  return found;
}

// A name in `where` with the values that it may have.
struct Choice {
  std::string name;
  ValueType type;
  std::vector<std::string> values;
};

std::vector<Choice> choices_in(const Benchmark& benchmark, const std::string& text) {
  std::vector<Choice> choices;
  const std::vector<std::string> names = values_read(text);
  for (const std::string& name : std::set<std::string>(names.begin(), names.end())) {
    const Parameter* parameter = constant_parameter(benchmark, name);
    // A value of --set has no place in the file: the file is right, and this run shows a part of
    // it.
    if (parameter == nullptr || !parameter->value.mark.known()) continue;
    choices.push_back(
        {name, parameter->type, split_strip(parameter->value.value, parameter->separator)});
  }
  return choices;
}

// Why the expression is false for all values of its parameters, a clause; empty if it is not.
std::string choice_fault(const std::vector<Choice>& choices, const ConditionCheck& conditions,
                         const std::string& text) {
  constexpr size_t most = 10000;
  size_t count = 1;
  for (const Choice& choice : choices) count = std::min(count * choice.values.size(), most + 1);
  if (count > most) return {};
  std::string mixed;
  for (size_t i = 0; i < count; ++i) {
    std::map<std::string, KnownValue> row;
    size_t rest = i;
    for (const Choice& choice : choices) {
      row[choice.name] =
          known_value(choice.name, choice.values[rest % choice.values.size()], choice.type);
      rest /= choice.values.size();
    }
    const KnownValues values = [&](const std::string& name) {
      const auto found = row.find(name);
      return found != row.end() ? found->second : conditions.known_type(name);
    };
    if (known_truth(text, values, &mixed) != Truth::no) return {};
  }
  if (!mixed.empty()) return mixed;
  std::vector<std::string> said;
  for (const Choice& choice : choices)
    said.push_back(fmt::format("'{}' is {}", choice.name, join(choice.values, ", ")));
  return said.empty() ? "it is false for each row" : join(said, ", ");
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
  return choice_fault(choices_in(benchmark, text), conditions, text);
}

// The same of a run whose results a file defines anew: neither the run nor the file may have such a row.
std::string where_fault(const Benchmark& benchmark, const Table& table, const std::string& where) {
  std::string why = where_fault(benchmark, ConditionCheck(benchmark, table), where);
  if (why.empty() || benchmark.today == nullptr) return why;
  const std::string today =
      where_fault(*benchmark.today, ConditionCheck(*benchmark.today, table), where);
  if (today.empty() || today == why) return today;
  return fmt::format("{} in the run, and {} in the file", why, today);
}

}  // namespace

void check_reference_conditions(const Benchmark& benchmark, Diagnostics& diagnostics) {
  for (const Table* table : tables_of(benchmark)) {
    const ConditionCheck conditions(benchmark, *table);
    for (const Reference& reference : table->references) {
      if (const std::string why = conditions.fault(reference); !why.empty()) {
        diagnostics.error(reference.condition.mark,
                          fmt::format("no value can meet the reference '{}' of '{}': {}",
                                      reference.condition.value, reference.column.value, why),
                          "write, for example, `<= 560`, `10 .. 20` or `34000 +- 5%`");
      }
      if (const std::string why = where_fault(benchmark, *table, reference.where.value);
          !why.empty()) {
        diagnostics.error(reference.where.mark,
                          fmt::format("the reference of '{}' chooses no row by '{}': {}",
                                      reference.column.value, reference.where.value, why),
                          "correct `where`, or give the reference a `tag`");
      }
    }
  }
}

}  // namespace tally
