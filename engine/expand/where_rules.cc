#include "engine/expand/where_rules.h"
#include "engine/base/text.h"
#include "engine/python/guarded_literal.h"
#include "engine/python/value.h"

#include <algorithm>
#include <cctype>

#include "engine/expand/substitute.h"

namespace tally {
namespace {

// The number of points whose rule is evaluated by one Python expression.
constexpr size_t chunk = 4096;

// The Python literal for a parameter's value, which has the parameter's type.
std::string literal(const Parameter& parameter, const std::string& value) {
  if (parameter.type == ValueType::string)
    return guarded_literal(parameter.name.value, value, true);
  const bool digits = !value.empty() && std::ranges::all_of(value, [](char c) {
    return isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+' || c == '.' ||
           c == 'e' || c == 'E';
  });
  if (digits && python_float(value)) {
    const bool integer = value.find_first_of(".eE") == std::string::npos;
    if (!integer) return value;
    // 007 is not a valid Python literal, so leading zeros are dropped.
    const size_t sign = value[0] == '-' || value[0] == '+' ? 1 : 0;
    const size_t first = std::min(value.find_first_not_of('0', sign), value.size() - 1);
    return value.substr(0, sign) + value.substr(first);
  }
  return "float(" + python_string(value) + ")";
}

// `true` and `false` alone, which YAML has and Python has not.
std::string python_truth(const std::string& text) {
  const std::string_view word = strip(text);
  return word == "true" ? "True" : word == "false" ? "False" : text;
}

// The slots whose names occur as words in the rule.
std::vector<size_t> mentioned(const std::string& rule, const Point& point, const TextPool& pool) {
  std::vector<size_t> slots;
  for (size_t slot = 0; slot < point.bindings.size(); ++slot) {
    const std::string& name = pool[point.bindings[slot].name];
    for (size_t at = rule.find(name); at != std::string::npos; at = rule.find(name, at + 1)) {
      const size_t end = at + name.size();
      if ((at == 0 || !is_name_char(rule[at - 1])) &&
          (end == rule.size() || !is_name_char(rule[end]))) {
        slots.push_back(slot);
        break;
      }
    }
  }
  return slots;
}

struct Rule {
  const std::string& text;
  const std::vector<const Point*>& points;
  Definitions& definitions;
  std::vector<size_t> slots;

  // [bool(RULE) for a,b, in [(1,2,),(3,4,),]]
  std::string expression(size_t first, size_t count) const {
    const TextPool& pool = definitions.pool();
    std::string names, values;
    for (const size_t slot : slots) names += pool[points[first]->bindings[slot].name] + ",";
    for (size_t i = first; i < first + count; ++i) {
      values += '(';
      for (const size_t slot : slots) {
        const Binding& b = points[i]->bindings[slot];
        values += literal(*definitions.of(b).parameter, pool[b.value]) + ",";
      }
      values += "),";
    }
    if (slots.empty()) names = "_,", values = "(0,),";
    return "[bool(\n" + with_written_numbers(text) + "\n) for " + names + " in [" + values + "]]";
  }
};

// Parses Python's "[True, False]".
std::vector<bool> read_truths(const std::string& text) {
  std::vector<bool> truths;
  for (const char c : text) {
    if (c == 'T' || c == 'F') truths.push_back(c == 'T');
  }
  return truths;
}

// Evaluates a rule that has bare names only. One expression covers a whole chunk of points.
void evaluate_bare(const Rule& rule, Evaluator& evaluator, std::vector<RuleResult>& results) {
  const size_t total = rule.slots.empty() ? 1 : rule.points.size();
  for (size_t first = 0; first < total; first += chunk) {
    const size_t count = std::min(chunk, total - first);
    const Evaluation all = evaluator.evaluate_one(Mode::python, rule.expression(first, count));
    const std::vector<bool> truths = read_truths(all.value);
    if (all.ok && truths.size() == count) {
      for (size_t i = 0; i < count; ++i) results[first + i].holds = truths[i];
      continue;
    }
    // One of the points failed. Evaluating them one by one finds it.
    std::vector<std::string> expressions;
    for (size_t i = 0; i < count; ++i) expressions.push_back(rule.expression(first + i, 1));
    const std::vector<Evaluation> each = evaluator.evaluate(Mode::python, expressions);
    for (size_t i = 0; i < count; ++i) {
      results[first + i].holds = each[i].ok && each[i].value == "[True]";
      results[first + i].error = each[i].ok ? "" : each[i].error;
    }
  }
  for (size_t i = total; i < rule.points.size(); ++i) results[i] = results[0];
}

}  // namespace

std::vector<RuleResult> evaluate_rule(
    const std::string& text, const std::vector<const Point*>& points, Definitions& definitions,
    const std::vector<std::pair<std::string, std::string>>& builtins, Evaluator& evaluator) {
  std::vector<RuleResult> results(points.size());
  if (points.empty()) return results;
  const TextPool& pool = definitions.pool();
  if (text.find('$') == std::string::npos) {
    const std::string plain = python_truth(text);
    evaluate_bare({plain, points, definitions, mentioned(plain, *points[0], pool)}, evaluator,
                  results);
    return results;
  }
  std::vector<std::string> expressions;
  expressions.reserve(points.size());
  for (const Point* point : points) {
    const Lookup lookup = [&](std::string_view name) -> const std::string* {
      if (const Binding* b = find_binding(*point, pool, name)) return &pool[b->value];
      for (const auto& [key, value] : builtins) {
        if (key == name) return &value;
      }
      return nullptr;
    };
    const std::string replaced = python_truth(substitute(text, lookup));
    const std::vector<const Point*> one{point};
    expressions.push_back(
        Rule{replaced, one, definitions, mentioned(replaced, *point, pool)}.expression(0, 1));
  }
  const std::vector<Evaluation> each = evaluator.evaluate(Mode::python, expressions);
  for (size_t i = 0; i < points.size(); ++i) {
    results[i].holds = each[i].ok && each[i].value == "[True]";
    results[i].error = each[i].ok ? "" : each[i].error;
  }
  return results;
}

}  // namespace tally
