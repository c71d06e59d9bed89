#include "engine/results/read/patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/python/python_regex.h"
#include "engine/python/tokens.h"
#include "engine/workflow/column_order.h"
#include "engine/workflow/pattern_uses.h"

namespace tally {

// The texts of patterns, as they are before a workpackage is known.

namespace {

// The pattern sets that analysers use. Sets that a parameter chooses are not known: then all are.
bool is_used(const Benchmark& benchmark, const std::string& set) {
  const auto names = [&](const Text& name) { return name.value == set || has_dollar(name.value); };
  return std::ranges::any_of(benchmark.analysers, [&](const Analyser& analyser) {
    const std::vector<Text> uses = used_pattern_sets(analyser);
    return std::ranges::any_of(uses, names);
  });
}

// Whether an analyser that uses the set makes a row of each match of the pattern.
bool begins_rows(const Benchmark& benchmark, const std::string& set, const Pattern& pattern) {
  return std::ranges::any_of(benchmark.analysers, [&](const Analyser& analyser) {
    const std::vector<Text> uses = used_pattern_sets(analyser);
    return !analyser.rows.empty() && analyser.rows.front().value == pattern.name.value &&
           std::ranges::any_of(uses, [&](const Text& use) { return use.value == set; });
  });
}

// Whether all that the expression matches has a letter or a sign that no number has. A part in
// brackets, and one that looks around, may match nothing of it.
bool matches_words(const std::string& text) {
  constexpr std::string_view kOfNumbers = "eEdDxX";
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\') {
      ++at;
    } else if (c == '[' || c == '(' || c == '{') {
      if (c == '(') return false;
      at = std::min(text.find(c == '[' ? ']' : '}', at + 2), text.size());
    } else if (c == '|') {
      return false;
    } else if (kOfNumbers.find(c) == std::string_view::npos &&
               (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '=' || c == ':')) {
      const char next = at + 1 < text.size() ? text[at + 1] : ' ';
      if (next != '?' && next != '*' && next != '{') return true;
    }
  }
  return false;
}

// A position counts what the parts of patterns stand for, which nobody has written.
std::string without_position(const std::string& error) {
  return error.substr(0, error.find(" at position "));
}

}  // namespace

std::string several_groups(const std::string& pattern, int groups) {
  return fmt::format(
      "pattern '{}' begins rows, and has {} groups: write (?:...) for all but the one "
      "with the value",
      pattern, groups);
}

void check_patterns(const Benchmark& benchmark, Diagnostics& diagnostics) {
  for (const auto& [set_name, set] : benchmark.pattern_sets) {
    for (const Pattern& pattern : set.patterns) {
      if (pattern.mode != PatternMode::pattern) continue;
      auto lookup = [&](std::string_view name) {
        return pattern_building_block(name, benchmark.rules.fortran_numbers);
      };
      std::string text = substitute(pattern.value.value, lookup);
      if (has_dollar_name(text)) continue;
      std::unique_ptr<Regex> regex;
      const Status valid = Regex::compile(text, pattern.dotall, &regex);
      if (valid) {
        if (benchmark.rules.harmless_mistakes_are_errors && regex->groups() == 0 &&
            pattern.type != ValueType::string && matches_words(text)) {
          diagnostics.error(
              pattern.value.mark,
              fmt::format("pattern '{}' is a number, and has no group that says which part of the "
                          "match it is",
                          pattern.name.value),
              pattern.name.value == "rows"
                  ? "`rows` stands beside `run`; or put parentheses around the value"
                  : "put parentheses around the value, or use $jube_pat_fp");
        }
        if (regex->groups() > 1 && begins_rows(benchmark, set_name, pattern)) {
          diagnostics.error(pattern.value.mark,
                            several_groups(pattern.name.value, regex->groups()));
        }
        continue;
      }
      const std::string& why = valid.message();
      const std::string message = fmt::format(
          "pattern '{}' is not a regular expression: {} in \"{}\"", pattern.name.value,
          text == pattern.value.value ? why : without_position(why), pattern.value.value);
      if (!benchmark.rules.harmless_mistakes_are_errors && !is_used(benchmark, set_name)) {
        diagnostics.warning(pattern.value.mark, message, "no analyser uses it");
      } else {
        diagnostics.error(pattern.value.mark, message);
      }
    }
  }
}

std::vector<const Pattern*> patterns_of_analyser(const Benchmark& benchmark,
                                                 const Analyser& analyser, const Analyse* of) {
  std::vector<Text> use = analyser.use;
  for (const Analyse& analyse : analyser.analyse) {
    if (of != nullptr && of != &analyse) continue;
    for (const AnalyseFile& file : analyse.files) {
      use.insert(use.end(), file.use.begin(), file.use.end());
    }
  }
  std::vector<const Pattern*> patterns;
  std::set<std::string> seen;
  for (const Pattern* pattern : patterns_of(benchmark, use)) {
    if (seen.insert(pattern->name.value).second) patterns.push_back(pattern);
  }
  return patterns;
}

std::set<std::string> names_behind(const std::vector<const Pattern*>& patterns,
                                   const Pattern& derived) {
  std::set<std::string> names;
  std::vector<const Pattern*> open = {&derived};
  std::set<const Pattern*> seen;
  while (!open.empty()) {
    const Pattern* one = open.back();
    open.pop_back();
    if (!seen.insert(one).second) continue;
    for (const std::string& name : dollar_names(one->value.value)) {
      const auto computed = std::ranges::find_if(patterns, [&](const Pattern* other) {
        return other->name.value == name && other->mode != PatternMode::pattern;
      });
      if (computed != patterns.end()) {
        open.push_back(*computed);
      } else {
        names.insert(name);
      }
    }
  }
  return names;
}

std::vector<Rate> read_rates(const Benchmark& benchmark, const Analyser& analyser) {
  std::vector<Rate> rates;
  for (RateTimes& times : rate_times(benchmark, analyser)) {
    const Pattern& rate = *times.rate;
    Rate& one = rates.emplace_back(Rate{std::move(times), {rate.name.value}});
    if (rate.mode == PatternMode::pattern) continue;
    one.read.clear();
    for (const std::string& name : names_behind(patterns_of_analyser(benchmark, analyser), rate))
      one.read.insert(pattern_of(benchmark, name));
  }
  return rates;
}

namespace {

void add_column_words(const std::vector<Column>& columns, std::set<std::string>& out) {
  for (const Column& column : columns) {
    add_words(column.name.value + " " + column.expression.value, out);
    for (const auto& [name, value] : column.relative_to) out.insert(name.value);
  }
}

void add_names(const std::vector<std::string>& names, std::set<std::string>& out) {
  out.insert(names.begin(), names.end());
}

}  // namespace

void add_words(const std::string& text, std::set<std::string>& out) {
  std::string word;
  for (char c : text + " ") {
    if (is_word_char(c)) {
      word += c;
    } else if (!word.empty()) {
      out.insert(word);
      word.clear();
    }
  }
}

std::set<std::string> names_shown(const std::vector<Column>& columns,
                                  const std::vector<Reference>& references) {
  std::set<std::string> names;
  for (const Column& column : columns) {
    names.insert(column.name.value);
    add_names(names_computed_with(column), names);
  }
  for (const Reference& r : references) {
    names.insert(r.of.empty() ? r.column.value : r.column.value + "_" + r.of);
    add_names(names_read(r.condition.value), names);
    add_names(names_read(r.where.value), names);
  }
  return names;
}

std::set<std::string> names_in(const Table& table) {
  std::set<std::string> names;
  add_column_words(table.columns, names);
  for (const Reference& r : table.references) {
    add_words(r.column.value + " " + r.condition.value + " " + r.where.value, names);
    if (!r.of.empty()) names.insert(r.column.value + "_" + r.of);
  }
  add_words(join(table.sort, " ") + " " + table.filter.value, names);
  return names;
}

std::set<std::string> names_in(const Database& database) {
  std::set<std::string> names;
  add_column_words(database.keys, names);
  add_words(join(database.primary_keys, " ") + " " + database.filter.value, names);
  return names;
}

std::set<std::string> names_in(const Syslog& syslog) {
  std::set<std::string> names;
  add_column_words(syslog.keys, names);
  add_words(join(syslog.sort, " ") + " " + syslog.filter.value, names);
  return names;
}

namespace {

bool has_value_of(const std::vector<std::string>& names, const std::string& pattern) {
  return std::ranges::any_of(names,
                             [&](const std::string& name) { return is_value_of(name, pattern); });
}

// Whether the expression reads a value of the pattern: x, $x_max, baseline.x_median.
bool reads_value(const Column& column, const std::string& name) {
  return !column.expression.value.empty() && has_value_of(names_computed_with(column), name);
}

bool is_shown(const Benchmark& benchmark, const std::vector<const Pattern*>& computed,
              const std::string& name, std::set<const Pattern*>& seen) {
  const auto shows = [&](const Column& column) {
    return column.expression.value.empty() ? is_value_of(column.name.value, name)
                                           : reads_value(column, name);
  };
  const auto passes_on = [&](const Pattern* pattern) {
    const std::string& own = pattern->name.value;
    return !pattern->default_value && has_value_of(dollar_names(pattern->value.value), name) &&
           seen.insert(pattern).second && !may_lack_values(benchmark, own) &&
           is_shown(benchmark, computed, own, seen);
  };
  return std::ranges::any_of(
             tables_of(benchmark),
             [&](const Table* table) { return std::ranges::any_of(table->columns, shows); }) ||
         std::ranges::any_of(computed, passes_on);
}

}  // namespace

bool is_shown(const Benchmark& benchmark, const std::vector<const Pattern*>& computed,
              const std::string& name) {
  std::set<const Pattern*> seen;
  return is_shown(benchmark, computed, name, seen);
}

bool may_lack_values(const Benchmark& benchmark, const std::string& name) {
  bool any = false, computed = false, all = true;
  for (const Table* table : tables_of(benchmark)) {
    for (const Column& column : table->columns) {
      if (column.name.value == name) {
        if (!column.null_value_set) return false;
        any = true;
      } else if (reads_value(column, name)) {
        computed = true;
        all = all && column.null_value_set;
      }
    }
  }
  return any || (computed && all);
}

std::vector<SampleNameUse> sample_names(const Benchmark& benchmark,
                                        const std::set<std::string>& names) {
  std::vector<SampleNameUse> found;
  for (const std::string& name : names) {
    if (std::optional<SampleName> parts = sample_name(benchmark, name))
      found.push_back({name, *std::move(parts)});
  }
  return found;
}

bool shows_repeats(const Column& column) {
  return column.statistic != nullptr || column.better != Better::unknown;
}

}  // namespace tally
