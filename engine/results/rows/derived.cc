#include "engine/results/rows/derived.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/results/read/patterns.h"
#include "engine/workflow/table_names.h"

namespace tally {
namespace {

Mode mode_of(PatternMode mode) {
  if (mode == PatternMode::python) return Mode::python;
  if (mode == PatternMode::perl) return Mode::perl;
  return mode == PatternMode::shell ? Mode::shell : Mode::text;
}

// In Tally's own files a text that could not be computed is no value, and in JUBE's an empty one.
std::optional<Value> missing(const Pattern& pattern, bool own_rules) {
  if (pattern.default_value) {
    if (std::optional<Value> value = make_value(*pattern.default_value, pattern.type)) return value;
  }
  if (pattern.type != ValueType::string) return Value{std::numeric_limits<double>::quiet_NaN()};
  if (own_rules) return std::nullopt;
  return Value{std::string()};
}

// The values of one line as texts, made on demand.
class LineLookup {
 public:
  explicit LineLookup(const Line& line) : line_(line) {}
  const std::string* operator()(std::string_view name) {
    std::string key(name);
    if (line_.not_computed.count(key) != 0) return nullptr;
    auto made = texts_.find(key);
    if (made != texts_.end()) return &made->second;
    if (const Value* found = line_.values.find(name))
      return &texts_.emplace(std::move(key), found->str()).first->second;
    for (const auto& [parameter, value] : *line_.parameters) {
      if (parameter == name) return &value;
    }
    return nullptr;
  }

 private:
  const Line& line_;
  std::unordered_map<std::string, std::string> texts_;
};

// The value that a pattern's computation lacks on this line, for example because nothing matched in
// the files, or because that value could not be computed. Empty when no value is missing.
std::string missing_input(const Pattern& pattern, const Line& line) {
  LineLookup lookup(line);
  for (const std::string& name : dollar_names(pattern.value.value)) {
    const std::string* text = lookup(name);
    if (text == nullptr || *text == "nan") return name;
  }
  return {};
}

// The names of values that the pattern is computed from. Other names with a `$` are of the script.
std::vector<std::string> inputs_of(const Benchmark& benchmark, const Pattern& pattern) {
  std::vector<std::string> names = dollar_names(pattern.value.value);
  std::erase_if(names, [&](const std::string& name) {
    return name == pattern.name.value ||
           (!is_match_value(benchmark, name) && find_parameter(benchmark, name) == nullptr);
  });
  return names;
}

// Stores what stands for a value that could not be computed. A default stands for what was not
// found. In JUBE's files it does not stand for what was not computed.
void store_missing(const Pattern& pattern, bool own_rules, Line& line) {
  const std::string& name = pattern.name.value;
  if (std::optional<Value> value = missing(pattern, own_rules))
    line.values.set(name, *std::move(value));
  if (own_rules) {
    if (!pattern.default_value) line.not_computed.insert(name);
    return;
  }
  if (pattern.type != ValueType::string) return;
  LineLookup lookup(line);
  const std::vector<std::string> inputs = dollar_names(pattern.value.value);
  const bool lacks = std::ranges::any_of(inputs, [&](const std::string& input) {
    return input != name && lookup(input) == nullptr &&
           (!pattern.default_value || line.not_computed.count(input) != 0);
  });
  if (lacks) line.not_computed.insert(name);
}

struct Failures {
  size_t count = 0;  // of the lines, without those of failed work
  size_t lines = 0;
  bool own = false;    // of one that has all that the pattern needs
  bool value = false;  // one of these lines has one
  std::string why;     // of the first
};

// Says why the pattern could not be computed. That it can in no line is an error if a table shows it,
// as for a pattern that matches nothing. A line that lacks a value says nothing of this pattern.
void report(const ResultContext& context, const std::vector<const Pattern*>& computed,
            const Pattern& pattern, const Failures& failures) {
  const std::string& name = pattern.name.value;
  std::string message =
      fmt::format("pattern '{}' could not be computed in {} of {} result lines: {}", name,
                  failures.count, failures.lines, failures.why);
  const bool error = failures.own && !failures.value &&
                     context.benchmark.rules.missing_values_are_reported &&
                     !pattern.default_value && !may_lack_values(context.benchmark, name) &&
                     is_shown(context.benchmark, computed, name);
  if (error) {
    context.diagnostics.error(pattern.value.mark, std::move(message));
  } else {
    context.diagnostics.warning(pattern.value.mark, std::move(message));
  }
}

// The pattern's computation on one line.
struct Computation {
  Line* line = nullptr;
  std::string lacks;       // the value without which it is not computed
  std::string expression;  // empty then
  Evaluation result;
};

// In Tally's own files nothing is computed where a value is missing: in Perl, `$y + 1` would be 1.
std::vector<Computation> compute(const ResultContext& context, const Pattern& pattern,
                                 std::vector<Line>& lines) {
  std::vector<std::string> inputs;
  if (context.benchmark.rules.missing_values_are_reported)
    inputs = inputs_of(context.benchmark, pattern);
  std::vector<Computation> all;
  std::vector<std::string> expressions;
  all.reserve(lines.size());
  expressions.reserve(lines.size());
  for (Line& line : lines) {
    if (contains(line.left_out, &pattern)) continue;
    Computation& one = all.emplace_back();
    one.line = &line;
    LineLookup lookup(line);
    const auto lacked = std::ranges::find_if(
        inputs, [&](const std::string& name) { return lookup(name) == nullptr; });
    if (lacked != inputs.end()) {
      one.lacks = *lacked;
      continue;
    }
    one.expression = substitute(pattern.value.value, std::ref(lookup));
    expressions.push_back(one.expression);
  }
  if (expressions.empty()) return all;
  std::vector<Evaluation> results;
  if (pattern.mode == PatternMode::text) {
    for (std::string& text : expressions) results.push_back({true, std::move(text), {}});
  } else {
    results = context.evaluator.evaluate(mode_of(pattern.mode), expressions);
  }
  auto next = results.begin();
  for (Computation& one : all) {
    if (one.lacks.empty()) one.result = std::move(*next++);
  }
  return all;
}

// `failed_before`: patterns whose failure has been reported. Failures that only follow from these
// are not reported.
Failures derive_one(const ResultContext& context, const Pattern& pattern, std::vector<Line>& lines,
                    std::set<std::string>& failed_before) {
  const Rules& rules = context.benchmark.rules;
  std::vector<Computation> computed = compute(context, pattern, lines);
  Failures failures;
  failures.lines = computed.size();
  bool failed_here = false;
  for (Computation& one : computed) {
    Line& line = *one.line;
    const Evaluation& result = one.result;
    std::optional<Value> value;
    if (result.ok) value = make_value(result.value, pattern.type, rules.fractions_are_kept);
    if (!value && result.ok && python_float(result.value)) {
      value = make_value(result.value, ValueType::floating);  // nan, inf or a fraction as an int
    }
    if (!value && one.lacks.empty()) one.lacks = missing_input(pattern, line);
    const std::string& lacks = one.lacks;
    if (!line.failed && value) failures.value = true;
    if (!line.failed && !value && lacks.empty()) failures.own = true;
    if (!value && !line.failed && failed_before.count(lacks) == 0 && failures.count++ == 0) {
      failures.why = !lacks.empty() ? fmt::format("there is no value of '{}'", lacks)
                     : result.ok    ? fmt::format("\"{}\" is not a number", result.value)
                                    : fmt::format("\"{}\": {}", one.expression, result.error);
    }
    if (value) {
      line.values.set(pattern.name.value, *value);
    } else {
      failed_here = true;
      store_missing(pattern, rules.missing_values_are_reported, line);
    }
  }
  if (failed_here) failed_before.insert(pattern.name.value);
  return failures;
}

}  // namespace

void derive(const ResultContext& context, const std::vector<const Pattern*>& patterns,
            std::vector<Line>& lines) {
  std::vector<const Pattern*> left = patterns;
  std::set<std::string> failed_before;
  auto waits = [&](const Pattern* pattern) {
    std::vector<std::string> names = dollar_names(pattern->value.value);
    return std::ranges::any_of(left, [&](const Pattern* other) {
      return other != pattern && contains(names, other->name.value);
    });
  };
  while (!left.empty()) {
    auto next = std::find_if_not(left.begin(), left.end(), waits);
    // There is a cycle. A reference to a later pattern then finds no value.
    if (next == left.end()) next = left.begin();
    const Pattern* pattern = *next;
    left.erase(next);
    const Failures failures = derive_one(context, *pattern, lines, failed_before);
    if (failures.count != 0) report(context, patterns, *pattern, failures);
  }
}

}  // namespace tally
