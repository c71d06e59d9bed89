#include "engine/check/name_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "engine/base/text.h"
#include "engine/python/tokens.h"
#include "engine/workflow/builtin_names.h"
#include "engine/workflow/column_order.h"
#include "engine/workflow/pattern_uses.h"
#include "engine/workflow/table_names.h"

namespace tally {
namespace {

std::vector<std::string> value_names(const Benchmark& benchmark) {
  std::vector<std::string> names = fixed_builtin_names();
  names.emplace_back(kAnalyserColumn);
  if (benchmark.rules.own_columns) {
    names.emplace_back(kStatusColumn);
    for (const std::string_view name : kind_names(benchmark)) names.emplace_back(name);
    for (const JobValue& value : job_values()) names.emplace_back(value.name);
  }
  for (const Step& step : benchmark.steps) {
    names.push_back(parent_id_name(step.name.value));
  }
  for (const Parameter& p : all_parameters(benchmark)) names.push_back(p.name.value);
  for (const Pattern& p : all_patterns(benchmark)) {
    names.push_back(p.name.value);
    for (const std::string& suffix : match_suffixes()) names.push_back(p.name.value + suffix);
  }
  return names;
}

// Whether tags removed an element. It may have defined any name.
bool any_removed(const RemovedNames& removed) {
  return std::ranges::any_of(removed, [](const auto& kind) { return !kind.second.empty(); });
}

// Whether a parameter names a set that a step uses. The set may define any name.
bool sets_are_chosen_later(const Benchmark& benchmark) {
  return std::ranges::any_of(benchmark.steps, [](const Step& step) {
    return std::ranges::any_of(step.use, [](const Text& use) { return has_dollar(use.value); });
  });
}

// The names that one column may use of the others.
std::vector<std::string> names_of_others(const std::vector<Column>& columns, const Column& own) {
  std::vector<std::string> names;
  for (const Column& column : columns) {
    if (&column == &own) continue;
    names.push_back(column.name.value);
    if (value_name(column) != column.name.value) names.push_back(value_name(column));
  }
  return names;
}

// One name in a Python expression.
struct NameRead {
  std::string name;       // "time" of baseline.time, too
  std::string written;    // with its dollar, or with `baseline.`
  std::string before;     // "base" of base.time
  bool baseline = false;  // baseline.NAME
};

// The names that the expression reads, outside of texts. None where it makes names of its own.
std::vector<NameRead> names_in(const std::string& expression) {
  std::vector<PythonToken> tokens = tokens_of(expression);
  std::erase_if(tokens, [](const PythonToken& token) { return token.kind == TokenKind::space; });
  std::vector<NameRead> found;
  if (makes_names(tokens)) return found;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto at = [&](size_t index) {
      return index < tokens.size() ? tokens[index].text : std::string_view();
    };
    const std::string_view text = tokens[i].text;
    const bool dollar = tokens[i].kind == TokenKind::dollar;
    if (!dollar && tokens[i].kind != TokenKind::word) continue;
    NameRead one{std::string(dollar ? dollar_name(text) : text), std::string(text), {}, false};
    const bool of =
        at(i + 1) == "." && i + 2 < tokens.size() && tokens[i + 2].kind == TokenKind::attribute;
    if (one.name == "baseline" && of) {
      one = {std::string(at(i + 2)), std::string(text) + "." + std::string(at(i + 2)), {}, true};
      i += 2;
    } else if (of) {
      one.before = one.name;
      one.written += "." + std::string(at(i + 2));
    } else if (is_argument_name(tokens, i)) {
      continue;
    }
    found.push_back(std::move(one));
  }
  return found;
}

constexpr std::string_view kBlock = "jube_pat_";

// A hint for a part of patterns that does not exist. Names of these parts differ in the end alone.
std::string block_hint(const std::string& name) {
  const std::pair<const char*, const char*> words[] = {
      {"float", "fp"},    {"number", "fp"}, {"num", "fp"},  {"real", "fp"},    {"double", "fp"},
      {"integer", "int"}, {"word", "wrd"},  {"str", "wrd"}, {"string", "wrd"}, {"blank", "bl"}};
  const std::string end = name.substr(kBlock.size());
  std::string meant;
  for (const auto& [word, block] : words)
    if (end == word) meant = block;
  std::vector<std::string> ends;
  for (const std::string& block : pattern_block_names())
    ends.push_back(block.substr(kBlock.size()));
  if (meant.empty()) meant = nearest(end, ends);
  if (meant.empty()) return "there are: $" + join(pattern_block_names(), ", $");
  return fmt::format("did you mean '{}{}'?", kBlock, meant);
}

}  // namespace

ValueNames::ValueNames(const Benchmark& benchmark, const RemovedNames& removed, bool strict,
                       const Sources& sources, Diagnostics& diagnostics)
    : benchmark_(benchmark),
      may_be_removed_(any_removed(removed)),
      strict_(strict),
      sources_(sources),
      diagnostics_(diagnostics),
      names_(value_names(benchmark)) {
  for (const Step& step : benchmark.steps) steps_.push_back(step.name.value);
}

// NAME_STEP is the value that the step has, too.
bool ValueNames::is_value(const std::string& name) const {
  if (contains(names_, name) || sample_name(benchmark_, name)) return true;
  return std::ranges::any_of(steps_, [&](const std::string& step) {
    const size_t length = step.size() + 1;
    return name.size() > length && name.compare(name.size() - length, length, "_" + step) == 0 &&
           contains(names_, name.substr(0, name.size() - length));
  });
}

bool ValueNames::is_value(const std::string& name, const Names& columns) const {
  return contains(columns, name) || is_value(name);
}

void ValueNames::report(const Mark& mark, std::string message, std::string hint) const {
  if (may_be_removed_) {
    diagnostics_.warning(mark, std::move(message), std::move(hint));
  } else {
    diagnostics_.error(mark, std::move(message), std::move(hint));
  }
}

void ValueNames::check_columns(const std::vector<Column>& columns, const std::string& where) const {
  for (const Column& column : columns) {
    const Names others = names_of_others(columns, column);
    check_relative(column, others);
    const std::string& name = column.name.value;
    if (!column.expression.value.empty()) {
      if (!strict_) continue;
      check_expression(column.expression, fmt::format("column '{}'", name),
                       !column.relative_to.empty(), others);
    } else if (!name.empty() && !has_dollar(name) && !is_value(name)) {
      report_column(name, column.name.mark, where);
    }
  }
  if (strict_) check_order(columns);
}

// A statistic is computed in each repeat, which has no baseline row, and so is what is compared.
void ValueNames::check_order(const std::vector<Column>& columns) const {
  const auto is_a_value = [&](const std::string& name) { return is_value(name); };
  const ColumnOrder order = column_order(columns, is_a_value);
  if (!order.circle.empty()) {
    std::string names;
    for (const Column* column : order.circle) names += "'" + value_name(*column) + "' reads ";
    const Column& first = *order.circle.front();
    report(first.name.mark,
           fmt::format("columns read each other: {}'{}'", names, value_name(first)),
           "let one of them read a pattern or a parameter in place of the other");
    return;
  }
  for (const auto& [column, read] : ratios_read(order, is_a_value)) {
    const bool statistic = column->statistic != nullptr;
    if (!statistic && column->better == Better::unknown) continue;
    report(column->expression.mark,
           fmt::format("column '{}': {} in each repeat, and '{}' is relative to a baseline row, "
                       "which has no repeats to compare with one by one",
                       column->column_title(),
                       statistic ? "a statistic is computed" : "`better` takes the value", read),
           fmt::format("compute with the plain values, or leave {} out here",
                       statistic ? "the statistic" : "`better`"));
  }
}

void ValueNames::report_column(const std::string& name, const Mark& mark,
                               const std::string& where) const {
  std::string message =
      fmt::format("column '{}' of {} is neither a parameter nor a pattern", name, where);
  const bool computes = name.find_first_of("+-*/()% ") != std::string::npos;
  std::string hint = computes ? fmt::format(
                                    "a computed column has a name of its own: {{_: NAME, "
                                    "expression: {}}}",
                                    name)
                              : did_you_mean(name, names_);
  if (strict_ && !may_be_removed_) {
    diagnostics_.error(mark, std::move(message), std::move(hint));
  } else {
    diagnostics_.warning(mark, std::move(message), std::move(hint), {"column", name});
  }
}

void ValueNames::check_sort(const std::vector<std::string>& sort, const Mark& mark,
                            const std::string& where) const {
  for (const std::string& name : sort) {
    if (name.empty() || has_dollar(name) || is_value(name)) continue;
    diagnostics_.warning(
        mark, fmt::format("sort: '{}' of {} is neither a parameter nor a pattern", name, where),
        did_you_mean(name, names_), {"sort", name});
  }
}

void ValueNames::check_relative(const Column& column, const Names& columns) const {
  if (!strict_) return;
  for (const auto& [name, value] : column.relative_to) {
    if (name.value.empty() || has_dollar(name.value) || is_value(name.value, columns)) continue;
    if (name.value == "id") continue;  // of tables of several runs
    report(name.mark,
           fmt::format("relative_to of column '{}': '{}' is neither a parameter nor a pattern",
                       column.column_title(), name.value),
           did_you_mean(name.value, names_));
  }
}

void ValueNames::check_filter(const Text& filter, const std::vector<Column>& columns,
                              const std::string& where) const {
  const std::string word = to_lower(strip(filter.value));
  if (!strict_ || word == "true" || word == "false") return;
  const Column none;
  check_expression(filter, "the filter of " + where, false, names_of_others(columns, none));
}

void ValueNames::check_rule(const Text& rule, const std::string& where) const {
  const std::string word = to_lower(strip(rule.value));
  if (!strict_ || has_dollar(rule.value) || word == "true" || word == "false" ||
      sets_are_chosen_later(benchmark_))
    return;
  check_expression(rule, "a rule of " + where, false, {});
}

void ValueNames::check_expression(const Text& expression, const std::string& what, bool compares,
                                  const Names& columns) const {
  std::set<std::string> said;
  for (const NameRead& one : names_in(expression.value)) {
    const bool known = is_value(one.name, columns) || (!one.baseline && is_python_name(one.name));
    if ((known && (!one.baseline || compares)) || !said.insert(one.written).second) continue;
    std::string message = fmt::format("{}: '{}' is not the name of a value", what,
                                      one.before.empty() ? one.written : one.name);
    Names candidates = names_;
    candidates.insert(candidates.end(), columns.begin(), columns.end());
    std::string hint = did_you_mean(one.name, candidates);
    const std::string member = one.written.substr(one.written.find('.') + 1);
    if (one.baseline && !compares) {
      message = fmt::format("{}: '{}' needs a baseline row, and there is no 'relative_to'", what,
                            one.written);
      hint = "say which row it is, for example `relative_to: {nodes: 1}`";
    } else if (one.baseline && !hint.empty()) {
      hint = "did you mean 'baseline." + nearest(one.name, candidates) + "'?";
    } else if (!one.before.empty() && is_value(member, columns)) {
      hint = "did you mean 'baseline." + member + "'?";
    }
    report(place_of(sources_, expression.mark, one.written), std::move(message), std::move(hint));
  }
}

void ValueNames::check_pattern(const Pattern& pattern) const {
  if (!strict_ || pattern.mode == PatternMode::shell || pattern.mode == PatternMode::perl) return;
  if (sets_are_chosen_later(benchmark_)) return;
  std::set<std::string> said;
  for (const DollarName& dollar : dollar_names(pattern.value.value)) {
    const std::string& name = dollar.name;
    if (is_value(name) || pattern_building_block(name, true) != nullptr) continue;
    if (!said.insert(name).second) continue;
    Names candidates = pattern_block_names();
    candidates.insert(candidates.end(), names_.begin(), names_.end());
    std::string hint = name.starts_with(kBlock) ? block_hint(name) : did_you_mean(name, candidates);
    if (hint.empty()) hint = fmt::format("write $${} to mean the dollar itself", name);
    report(place_of(sources_, pattern.value.mark, dollar.written),
           fmt::format("pattern '{}': '${}' is neither a parameter nor a pattern",
                       pattern.name.value, name),
           hint);
  }
}

}  // namespace tally
