#include "engine/results/table/expressions.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/python/literal.h"

namespace tally {

bool is_column_char(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 128;
}

namespace {

bool keyword(const std::string& word) {
  static const std::set<std::string> words = {"and",  "or",     "not", "in",   "is",    "if",
                                              "else", "lambda", "for", "True", "False", "None"};
  return words.count(word) != 0;
}

// The functions of Python that an expression may call.
bool is_builtin(const std::string& word) {
  static const std::set<std::string> words = {
      "abs",    "all",     "any",     "ascii",      "bin",     "bool",    "bytes",     "callable",
      "chr",    "compile", "complex", "dict",       "dir",     "divmod",  "enumerate", "eval",
      "filter", "float",   "format",  "frozenset",  "getattr", "hasattr", "hash",      "hex",
      "id",     "input",   "int",     "isinstance", "iter",    "len",     "list",      "map",
      "max",    "min",     "next",    "object",     "oct",     "open",    "ord",       "pow",
      "print",  "range",   "repr",    "reversed",   "round",   "set",     "slice",     "sorted",
      "str",    "sum",     "tuple",   "type",       "vars",    "zip"};
  return words.count(word) != 0;
}

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
    char quote = '\0';
    for (size_t i = 0; i < expression.size();) {
      const char c = expression[i];
      if (quote == '\0' && is_column_char(c)) {
        i = word(expression, i);
        continue;
      }
      if (quote != '\0') {
        if (c == quote) quote = '\0';
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '$') {  // its text replaces it later
        const size_t from = i + (expression.compare(i, 2, "${") == 0 ? 2 : 1);
        const size_t end = end_of_word(expression, from);
        bound_.text += expression.substr(i, end - i);
        i = end;
        continue;
      }
      bound_.text += c;
      ++i;
    }
    return std::move(bound_);
  }

 private:
  static size_t end_of_word(const std::string& text, size_t from) {
    while (from < text.size() && is_column_char(text[from])) ++from;
    return from;
  }

  size_t word(const std::string& expression, size_t from) {
    const size_t end = end_of_word(expression, from);
    const std::string name = expression.substr(from, end - from);
    const bool attribute = from > 0 && expression[from - 1] == '.';
    const bool number = name[0] >= '0' && name[0] <= '9';
    const size_t next = expression.find_first_not_of(" \t\n", end);
    const bool called = next != std::string::npos && expression[next] == '(';
    std::string text = name;
    if (!attribute && !number && !keyword(name) && !(is_builtin(name) && called)) {
      if (is_builtin(name) && values_.has(name)) text = "value_of_" + name;
      bound_.names[name] = text;
    }
    bound_.text += text;
    return end;
  }

  const Cells& values_;
  Bound bound_;
};

// Turns '$name' and "${name}", when quoted alone, into str(name). Values that contain a quote are
// then handled like any others.
std::string unquote_names(const std::string& expression, const Cells& values) {
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
    bool whole = !name.empty() && std::all_of(name.begin(), name.end(), is_column_char);
    out += whole && values.has(name) ? "str(" + name + ")" : expression.substr(i, end - i + 1);
    i = end;
  }
  return out;
}

std::string without_quoted(const std::string& expression) {
  std::string out;
  char quote = '\0';
  for (const char c : expression) {
    const bool mark = c == '\'' || c == '"';
    if (quote == '\0' && !mark) out += c;
    if (mark && quote == '\0') {
      quote = c;
    } else if (c == quote) {
      quote = '\0';
    }
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
    const Bound bound = Binder(values_).bind(unquote_names(written, values_));
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
      arguments += (arguments.empty() ? "" : ", ") + literal(*value);
    }
    std::map<std::string, std::string> texts;
    std::string text = substitute(bound.text, [&](std::string_view name) -> const std::string* {
      const Value* found = values_.find(name);
      if (found == nullptr) return nullptr;
      return &texts.insert_or_assign(std::string(name), found->str()).first->second;
    });
    if (reading_.flags) text = with_flag(text);
    if (parameters.empty()) return text;
    return fmt::format("(lambda {}: ({}))({})", parameters, text, arguments);
  }

 private:
  // A $name in the text that has a value in another row, and none here.
  std::string lacking_in(const std::string& text) const {
    for (const std::string& name : referenced_names(text)) {
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

// The names for which any row has, or could have, a value.
std::set<std::string> known_names(const std::vector<Record>& rows, const Records* records) {
  std::set<std::string> names;
  const RowColumns* columns = nullptr;  // of the row before
  std::vector<bool> known;
  const auto take = [&] {
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i] || (*columns)[i].kind == ColumnKind::computed) names.insert((*columns)[i].name);
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
    for (const auto& [name, type] : records->types) names.insert(name);
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

bool is_python_word(const std::string& word) {
  return keyword(word) || is_builtin(word);
}

}  // namespace tally
