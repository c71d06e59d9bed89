#include "engine/results/table/early_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/python/python_format.h"
#include "engine/python/tokens.h"
#include "engine/results/table/condition.h"
#include "engine/results/table/marks.h"
#include "engine/results/table/result_table.h"
#include "engine/results/table/shown_expression.h"
#include "engine/workflow/table_names.h"
#include "engine/workpackage/outcome.h"

namespace tally {
namespace {

struct Expression {
  std::string what;  // "pattern 'x'"
  Text text;
  bool lines = false;  // may span several lines, because it is evaluated within parentheses
  bool gate = false;   // an error, since what it decides cannot be known: a reference, a rule
};

void add_sets(const Benchmark& benchmark, bool parameters, std::vector<Expression>& found) {
  for (const Pattern& pattern : all_patterns(benchmark)) {
    if (pattern.mode != PatternMode::python) continue;
    found.push_back({fmt::format("pattern '{}'", pattern.name.value), pattern.value});
  }
  for (const auto& [name, set] : benchmark.parameter_sets) {
    for (const Parameter& parameter : set.parameters) {
      if (!parameters || parameter.mode != Mode::python) continue;
      found.push_back({fmt::format("parameter '{}'", parameter.name.value), parameter.value});
    }
    // Without its rule no point is known.
    for (const Text& rule : set.where) {
      found.push_back({fmt::format("a rule of parameter set '{}'", name), rule, true, true});
    }
  }
}

void add_steps(const Benchmark& benchmark, std::vector<Expression>& found) {
  for (const Step& step : benchmark.steps) {
    found.push_back({fmt::format("'active' of step '{}'", step.name.value), step.active, true});
    for (const Operation& operation : step.operations) {
      found.push_back({fmt::format("'active' of a command of step '{}'", step.name.value),
                       operation.active, true});
    }
  }
}

void add_columns(const std::vector<Column>& columns, std::vector<Expression>& found) {
  for (const Column& column : columns) {
    found.push_back({fmt::format("column '{}'", column.name.value), column.expression, true});
  }
}

void add_results(const Benchmark& benchmark, std::vector<Expression>& found) {
  for (const Result& result : benchmark.results) {
    for (const auto& output : result.outputs) {
      std::visit([&](const auto& o) { found.push_back({"the filter", o.filter, true}); }, output);
      if (const auto* table = std::get_if<Table>(&output)) {
        add_columns(table->columns, found);
        for (const Reference& reference : table->references) {
          found.push_back({"'where' of a reference", reference.where, true, true});
          found.push_back(
              {"a reference",
               {condition_expression(reference.condition.value), reference.condition.mark},
               true,
               true});
        }
      }
    }
  }
}

std::string as_parsed(const std::string& text, bool lines) {
  return lines ? "(\n" + text + "\n)" : text;
}

// Variants of the text with placeholders for its names: the same placeholder for all, or an
// operator for one name and values for the others.
std::vector<std::string> guesses(const std::string& text) {
  std::vector<std::string> made;
  const auto with = [&](const std::string& every, const std::string& one,
                        const std::string& its_value) {
    made.push_back(substitute(text, [&](std::string_view name) {
      return name == one && !one.empty() ? &its_value : &every;
    }));
  };
  for (const char* value : {"a", "'a'", "+", "==", ""}) with(value, "", "");
  for (const std::string& name : dollar_names(text)) {
    for (const char* value : {"+", "==", "not", "if 1 else", "(", ")", "'", ","}) {
      with("1", name, value);
    }
  }
  return made;
}

bool readable_somehow(const Expression& expression, Evaluator& evaluator) {
  std::vector<std::string> readings;
  for (const std::string& guess : guesses(expression.text.value))
    readings.push_back(as_parsed(guess, expression.lines));
  const std::vector<Evaluation> results = evaluator.parse(readings);
  return std::ranges::any_of(results, [](const Evaluation& e) { return e.ok; });
}

void check_all(const std::vector<Expression>& expressions, Evaluator& evaluator,
               Diagnostics& diagnostics) {
  if (expressions.empty()) return;
  const std::string number = "1";
  std::vector<std::string> readings;
  for (const Expression& expression : expressions) {
    readings.push_back(
        as_parsed(substitute(expression.text.value, [&](std::string_view) { return &number; }),
                  expression.lines));
  }
  const std::vector<Evaluation> results = evaluator.parse(readings);
  if (!results.front().asked) {
    // That is no mistake of the file: results may be made on another machine.
    const size_t more = expressions.size() - 1;
    diagnostics.remark(expressions.front().text.mark,
                       fmt::format("{} was not checked{}: {}", expressions.front().what,
                                   more == 0 ? ""
                                             : fmt::format(", nor {} {} more of Python",
                                                           more == 1 ? "was" : "were", more),
                                   results.front().error));
    return;
  }
  for (size_t i = 0; i < expressions.size(); ++i) {
    const Expression& expression = expressions[i];
    const std::string& text = expression.text.value;
    if (results[i].ok || (has_dollar_name(text) && readable_somehow(expression, evaluator)))
      continue;
    const std::string why = results[i].error.substr(0, results[i].error.find(" (<string>"));
    std::string message = fmt::format("{}: Python cannot read \"{}\": {}", expression.what,
                                      shown_expression(text), why);
    if (expression.gate) {
      diagnostics.error(expression.text.mark, std::move(message));
    } else {
      diagnostics.warning(expression.text.mark, std::move(message));
    }
  }
}

// Whether a value of some type fits the format.
void check_formats(const std::vector<Column>& columns, Diagnostics& diagnostics) {
  for (const Column& column : columns) {
    if (column.format.empty()) continue;
    std::string text;
    Status fits;
    for (const ValueType type : {ValueType::integer, ValueType::floating, ValueType::string}) {
      const std::optional<Value> one = make_value("1", type);
      if (!one) continue;
      fits = format_cell(*one, column.format, false, &text);
      if (fits) break;
    }
    if (fits) continue;
    diagnostics.warning(column.name.mark,
                        fmt::format("column '{}': no value can be formatted as \"{}\": {}",
                                    column.name.value, column.format, fits.message()),
                        "formats are Python's, as .2f or .3g");
  }
}

// A filter that compares `status` with a mark of the tables ("FAILED"). The values are in small
// letters, so that such a filter drops every row, or none.
void check_status_words(const Text& filter, Diagnostics& diagnostics) {
  const std::vector<std::string> names = names_read(filter.value);
  if (!contains(names, kStatusColumn)) return;
  for (const PythonToken& token : tokens_of(filter.value)) {
    bool plain = false;
    const std::string word(inside_quotes(token.text, &plain));
    const std::string value = to_lower(word);
    const bool status = value == "reused" || state_named(value);
    if (!plain || value == word || !status) continue;
    diagnostics.warning(
        filter.mark, fmt::format("the filter: no row has the status '{}'", word),
        fmt::format("write '{}': only the marks that tables add are in capitals", value));
  }
}

// `n is 4`: Python may have several objects of one value, so that it is true or false by chance.
void check_identity(const std::vector<Expression>& expressions, Diagnostics& diagnostics) {
  for (const Expression& expression : expressions) {
    std::vector<PythonToken> tokens = tokens_of(expression.text.value);
    std::erase_if(tokens, [](const PythonToken& token) { return token.kind == TokenKind::space; });
    const auto is_literal = [&](size_t at) {
      return at < tokens.size() &&
             (tokens[at].kind == TokenKind::number || tokens[at].kind == TokenKind::text);
    };
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].kind != TokenKind::word || tokens[i].text != "is") continue;
      const bool no = i + 1 < tokens.size() && tokens[i + 1].text == "not";
      if (!is_literal(i + (no ? 2 : 1)) && (i == 0 || !is_literal(i - 1))) continue;
      diagnostics.remark(
          expression.text.mark,
          fmt::format("{}: `{}` does not compare values", expression.what, no ? "is not" : "is"),
          fmt::format("write {}", no ? "!=" : "=="));
      break;
    }
  }
}

// Behind the parts of a text that are taken from `at` on: [0], .split('-')[0]. `at`: there are none.
size_t end_of_parts(const std::vector<PythonToken>& tokens, size_t at) {
  static const std::set<std::string_view> functions = {
      "split",  "rsplit", "partition", "rpartition",   "strip",        "lstrip",
      "rstrip", "lower",  "upper",     "removeprefix", "removesuffix", "replace"};
  const auto is = [&](size_t i, std::string_view text) {
    return i < tokens.size() && tokens[i].text == text;
  };
  for (;;) {
    const bool called = is(at, ".") && at + 1 < tokens.size() &&
                        functions.contains(tokens[at + 1].text) && is(at + 2, "(");
    if (!called && !is(at, "[")) return at;
    if (called) at += 2;
    int depth = 0;
    do {
      depth += is_one_of("([{", tokens[at].text.front()) ? 1 : 0;
      depth -= is_one_of(")]}", tokens[at].text.front()) ? 1 : 0;
      ++at;
    } while (depth > 0 && at < tokens.size());
  }
}

// `n[0] == 4`: a part of a text is a text, also where the whole would be a number beside numbers.
void check_parts_of_texts(const Benchmark& benchmark, const std::vector<Expression>& expressions,
                          Diagnostics& diagnostics) {
  for (const Expression& expression : expressions) {
    std::vector<PythonToken> tokens = tokens_of(expression.text.value);
    std::erase_if(tokens, [](const PythonToken& token) { return token.kind == TokenKind::space; });
    const auto equals = [&](size_t i) {
      return i < tokens.size() && (tokens[i].text == "==" || tokens[i].text == "!=");
    };
    const auto is_number = [&](size_t i) {
      return i < tokens.size() && tokens[i].kind == TokenKind::number;
    };
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].kind != TokenKind::word) continue;
      const size_t end = end_of_parts(tokens, i + 1);
      const bool beside =
          (equals(end) && is_number(end + 1)) || (i > 1 && equals(i - 1) && is_number(i - 2));
      if (end == i + 1 || !beside || !text_named(benchmark, std::string(tokens[i].text), {}))
        continue;
      std::string part;
      for (size_t k = i; k < end; ++k) part += tokens[k].text;
      diagnostics.error(
          expression.text.mark,
          fmt::format("{}: {} is a text, which equals no number", expression.what, part),
          fmt::format("compare it with a text, or write int({})", part));
      break;
    }
  }
}

}  // namespace

void check_expressions(const Benchmark& benchmark, bool parameters, Evaluator& evaluator,
                       Diagnostics& diagnostics) {
  std::vector<Expression> found;
  add_sets(benchmark, parameters, found);
  if (parameters) add_steps(benchmark, found);
  add_results(benchmark, found);
  std::erase_if(found, [](const Expression& e) {
    const std::string& text = e.text.value;
    return strip(text).empty() || text == "true" || text == "false";
  });
  check_all(found, evaluator, diagnostics);
  if (benchmark.rules.own_columns) {
    check_identity(found, diagnostics);
    check_parts_of_texts(benchmark, found, diagnostics);
  }
  for (const Result& result : benchmark.results) {
    for (const auto& output : result.outputs) {
      if (status_is_ours(benchmark))
        std::visit([&](const auto& o) { check_status_words(o.filter, diagnostics); }, output);
      if (const auto* table = std::get_if<Table>(&output)) {
        check_formats(table->columns, diagnostics);
      } else if (const auto* syslog = std::get_if<Syslog>(&output)) {
        check_formats(syslog->keys, diagnostics);
      }
    }
  }
}

}  // namespace tally
