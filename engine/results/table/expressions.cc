#include "engine/results/table/expressions.h"

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/python/guarded_literal.h"
#include "engine/python/tokens.h"
#include "engine/python/value.h"
#include "engine/results/table/shown_expression.h"

namespace tally {

namespace {

// An expression whose bare names are bound to the row's values.
struct Bound {
  std::string text;
  std::map<std::string, std::string> names;  // names of values, and their names in `text`
};

// Splits `expression` into tokens. A bare name outside strings that is not an attribute (x.real) is
// the value of that name. A builtin that is called stays Python's function. A value with the name
// of a builtin (`str`, `len`) gets another name, so that it does not hide the function.
class Binder {
 public:
  explicit Binder(const Cells& values) : values_(values) {}

  Bound bind(const std::string& expression) {
    const std::vector<PythonToken> tokens = tokens_of(expression);
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].kind != TokenKind::word || is_argument_name(tokens, i)) {
        bound_.text += tokens[i].text;  // of a $name, its text replaces it later
        continue;
      }
      size_t next = i + 1;
      while (next < tokens.size() && tokens[next].kind == TokenKind::space) ++next;
      add_name(std::string(tokens[i].text), next < tokens.size() && tokens[next].text == "(");
    }
    return std::move(bound_);
  }

 private:
  void add_name(const std::string& name, bool called) {
    std::string text = name;
    if (!is_python_keyword(name) && !(is_python_function(name) && called)) {
      if (is_python_function(name) && values_.has(name)) text = "value_of_" + name;
      bound_.names[name] = text;
    }
    bound_.text += text;
  }

  const Cells& values_;
  Bound bound_;
};

// Turns '$name' and "${name}", when quoted alone, into str(name). Values that contain a quote are
// then handled like any others.
std::string unquote_names(const std::string& expression, const Cells& values) {
  std::string out;
  for (const PythonToken& token : tokens_of(expression)) {
    bool plain = false;
    const std::string name(dollar_name(inside_quotes(token.text, &plain)));
    out +=
        plain && !name.empty() && values.has(name) ? "str(" + name + ")" : std::string(token.text);
  }
  return out;
}

std::string without_quoted(const std::string& expression) {
  std::string out;
  for (const PythonToken& token : tokens_of(expression)) {
    if (token.kind != TokenKind::text) out += token.text;
  }
  return out;
}

// `true` and `false` as Python has them.
std::string with_flag(const std::string& text) {
  const std::string word = to_lower(strip(text));
  return word == "true" ? "True" : word == "false" ? "False" : text;
}

// An expression for the values of one row.
class RowBinder {
 public:
  RowBinder(const Cells& values, const std::set<std::string>& known, const Reading& reading)
      : values_(values), known_(known), reading_(reading) {}

  // Returns the expression with $names replaced and bare names bound to the row's values. Returns
  // nothing if the row lacks a value for a $name or for a bare name that is known.
  std::string bind(const std::string& written, std::string* lacking) const {
    // As in `where` of a parameter set. JUBE's filters have no bare names.
    const bool numbers = reading_.without != WithoutValue::text;
    const std::string named = unquote_names(written, values_);
    const Bound bound = Binder(values_).bind(numbers ? with_written_numbers(named) : named);
    *lacking = lacking_in(bound.text);
    const WithoutValue without = reading_.without;
    if (without == WithoutValue::leaves_out && !lacking->empty()) return {};
    if (without == WithoutValue::text_in_quotes && !lacking_in(without_quoted(bound.text)).empty())
      return {};
    std::string parameters;
    std::string arguments;
    for (const auto& [name, called] : bound.names) {
      const Value* value = values_.find(name);
      if (value == nullptr) {
        if (known_.count(name) == 0) continue;
        *lacking = name;
        return {};
      }
      parameters += (parameters.empty() ? "" : ", ") + called;
      const auto* as_text = std::get_if<std::string>(&value->data);
      arguments += arguments.empty() ? "" : ", ";
      arguments += as_text == nullptr ? literal(*value) : guarded_literal(name, *as_text, numbers);
    }
    std::map<std::string, std::string> texts;
    std::string text = substitute(bound.text, [&](std::string_view name) -> const std::string* {
      const Value* found = values_.find(name);
      if (found == nullptr) return nullptr;
      return &texts.insert_or_assign(std::string(name), found->str()).first->second;
    });
    if (reading_.flags) text = with_flag(text);
    if (parameters.empty()) return text;
    return fmt::format("(lambda {}: ({}\n))({})", parameters, text, arguments);
  }

 private:
  // A $name in the text that has a value in another row, and none here.
  std::string lacking_in(const std::string& text) const {
    for (const std::string& name : dollar_names(text)) {
      if (known_.count(name) != 0 && !values_.has(name)) return name;
    }
    return {};
  }

  const Cells& values_;
  const std::set<std::string>& known_;
  const Reading& reading_;
};

// An expression whose text also says the result's type: "float:1.5". take_type() takes it off.
std::string saying_its_type(const std::string& expression) {
  return "(lambda v: type(v).__name__ + ':' + str(v))(" + expression + "\n)";
}

void take_type(Evaluated& one) {
  if (!one.result.ok) return;
  const size_t colon = one.result.value.find(':');
  if (colon == std::string::npos) return;
  one.type = one.result.value.substr(0, colon);
  one.result.value.erase(0, colon + 1);
}

}  // namespace

Value Evaluated::value() const {
  return type == "str" ? Value{std::string(result.value)} : typed(result.value);
}

std::string shown_expression(std::string_view expression) {
  constexpr size_t kMost = 160;
  expression = strip(expression);
  if (expression.size() <= kMost) return std::string(expression);
  size_t end = kMost;  // not inside a character of UTF-8
  while (end > 0 && (static_cast<unsigned char>(expression[end]) & 0xC0U) == 0x80U) --end;
  return std::string(expression.substr(0, end)) + " ...";
}

// The names for which any row has, or could have, a value.
std::set<std::string> known_names(const std::vector<Record>& rows, const Records* records) {
  std::set<std::string> names;
  const RowColumns* columns = nullptr;  // of the row before
  std::vector<bool> known;
  const auto take = [&] {
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i] || columns->asked(i)) names.insert(columns->name(i));
    }
  };
  for (const Record& row : rows) {
    if (row.values.columns().get() != columns) {
      take();
      columns = row.values.columns().get();
      known.assign(columns == nullptr ? 0 : columns->size(), false);
    }
    const std::vector<Value>& cells = row.values.all();
    for (size_t i = 0; i < cells.size(); ++i) known[i] = known[i] || !cells[i].none();
  }
  take();
  if (records != nullptr) {
    for (const auto& [name, values] : records->known)
      if (values.type) names.insert(name);
  }
  return names;
}

std::vector<Evaluated> evaluate(const std::string& expression, const std::vector<Record>& rows,
                                const std::set<std::string>& known, Evaluator& evaluator,
                                const Reading& reading) {
  std::vector<Evaluated> out(rows.size());
  std::vector<std::string> expressions;
  std::vector<size_t> which;
  for (size_t i = 0; i < rows.size(); ++i) {
    const RowBinder binder(rows[i].values, known, reading);
    std::string bound = binder.bind(expression, &out[i].lacks);
    if (bound.empty()) continue;
    expressions.push_back(saying_its_type(bound));
    which.push_back(i);
  }
  if (expressions.empty()) return out;
  std::vector<Evaluation> results = evaluator.evaluate(Mode::python, expressions);
  for (size_t i = 0; i < which.size(); ++i) {
    Evaluated& one = out[which[i]];
    one.present = true;
    one.result = std::move(results[i]);
    take_type(one);
  }
  return out;
}

}  // namespace tally
