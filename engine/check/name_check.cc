#include "engine/check/name_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/duration.h"
#include "engine/base/text.h"
#include "engine/workflow/chart_words.h"
#include "engine/workflow/pattern_uses.h"
#include "engine/workflow/table_names.h"

namespace tally {
namespace {

template <typename Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  return keys;
}

template <typename List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& item : list) names.push_back(item.name.value);
  return names;
}

class NameChecker {
 public:
  NameChecker(const Benchmark& benchmark, const RemovedNames& removed, bool strict,
              const Sources& sources, Diagnostics& diagnostics)
      : benchmark_(benchmark),
        removed_(removed),
        diagnostics_(diagnostics),
        strict_(strict),
        values_(benchmark, removed, strict, sources, diagnostics),
        steps_(names_of(benchmark.steps)) {
    for (const Step& step : benchmark.steps) by_name_.emplace(step.name.value, &step);
  }

  void check_steps() {
    for (const Step& step : benchmark_.steps) check_step(step);
    check_cycles();
    for (const auto& [name, set] : benchmark_.parameter_sets)
      for (const Text& rule : set.where)
        values_.check_rule(rule, fmt::format("parameter set '{}'", name));
  }

  void check_results() {
    std::vector<std::string> patterns = keys_of(benchmark_.pattern_sets);
    for (const Analyser& analyser : benchmark_.analysers) {
      std::string where = fmt::format("analyser '{}'", analyser.name.value);
      for (const Text& use : analyser.use) require_later(use, patterns, "patternset", where);
      for (const Analyse& analyse : analyser.analyse) {
        require_later(analyse.step, steps_, "step", where);
        for (const AnalyseFile& file : analyse.files) {
          for (const Text& use : file.use) require_later(use, patterns, "patternset", where);
        }
      }
      check_rows(analyser);
      check_clashes(analyser);
      for (const Analyse& analyse : analyser.analyse)
        check_pattern_names(benchmark_, analyser, analyse, diagnostics_);
    }
    for (const Pattern& pattern : all_patterns(benchmark_)) {
      check_pattern("measured_over", pattern.measured_over);
      values_.check_pattern(pattern);
    }
    if (strict_) {  // a stored run stays readable
      for (const Analyser& analyser : benchmark_.analysers) check_pattern_types(analyser);
      check_rates();
    }
    for (const Result& result : benchmark_.results) {
      check_result(result);
      for (const auto& output : result.outputs)
        std::visit([this](const auto& shown) { check_unique(shown.name); }, output);
    }
  }

 private:
  bool is_removed(const std::string& kind, const std::string& name) const {
    const auto names = removed_.find(kind);
    return names != removed_.end() && names->second.count(name) > 0;
  }

  // Checks a name that only analysis and results need. The steps can run without it.
  void require_later(const Text& name, const std::vector<std::string>& known, const char* kind,
                     const std::string& where) {
    if (contains(known, name.value) || !is_removed(kind, name.value)) {
      require(name, known, std::strcmp(kind, "patternset") == 0 ? "pattern set" : kind, where);
      return;
    }
    diagnostics_.warning(
        name.mark,
        fmt::format("{} names {} '{}', which the tags leave out", where, kind, name.value),
        "the steps run, but it cannot be analysed: give both the same tag");
  }

  void require(const Text& name, const std::vector<std::string>& known, const char* what,
               const std::string& where) {
    if (name.value.empty() || has_dollar(name.value) || contains(known, name.value)) return;
    std::string hint = did_you_mean(name.value, known);
    for (const char* kind : {what, "parameterset", "fileset", "substituteset"}) {
      if (is_removed(kind, name.value)) hint = "it is defined, but the tags leave it out";
    }
    if (hint.empty()) {
      hint = known.empty() ? fmt::format("the benchmark defines no {}", what)
                           : "there are: " + join(known, ", ");
    }
    diagnostics_.error(name.mark, fmt::format("unknown {} '{}' in {}", what, name.value, where),
                       hint);
  }

  void check_step(const Step& step) {
    check_until(step);
    std::vector<std::string> sets = keys_of(benchmark_.parameter_sets);
    for (const std::string& name : keys_of(benchmark_.file_sets)) sets.push_back(name);
    for (const std::string& name : keys_of(benchmark_.substitute_sets)) sets.push_back(name);
    std::string where = fmt::format("step '{}'", step.name.value);
    for (const Text& use : step.use) require(use, sets, "set", where);
    for (const Text& depend : step.depend) require(depend, steps_, "step", where);
  }

  // Depth-first search. A step that is met again while it is open closes a cycle.
  void check_cycles() {
    for (const Step& step : benchmark_.steps) {
      if (done_.count(step.name.value) == 0) visit(step);
    }
  }

  const Step* find_step(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found != by_name_.end() ? found->second : nullptr;
  }

  void visit(const Step& step) {
    path_.push_back(step.name.value);
    open_.insert(step.name.value);
    for (const Text& depend : step.depend) {
      if (open_.count(depend.value) != 0) {
        std::vector<std::string> cycle(std::find(path_.begin(), path_.end(), depend.value),
                                       path_.end());
        cycle.push_back(depend.value);
        diagnostics_.error(
            depend.mark,
            "Cannot resolve dependencies. These steps wait for each other: " + join(cycle, " -> "));
        continue;
      }
      const Step* next = find_step(depend.value);
      if (next && done_.count(depend.value) == 0) visit(*next);
    }
    path_.pop_back();
    open_.erase(step.name.value);
    done_.insert(step.name.value);
  }

  // The hint for a word of `rows` that is no pattern of the analyser.
  std::string rows_hint(const std::string& word, const std::vector<std::string>& patterns) const {
    if (find_parameter(benchmark_, word) != nullptr)
      return "a parameter is in each row as it is: leave it out";
    const std::string near = did_you_mean(word, patterns);
    if (!near.empty()) return near;
    return patterns.empty() ? "it has no patterns" : "there are: " + join(patterns, ", ");
  }

  // `rows` names patterns that the analyser searches for. Sets that are chosen by a parameter are
  // not known yet.
  void check_rows(const Analyser& analyser) {
    std::map<std::string, const Pattern*> known;
    for (const Text& use : used_pattern_sets(analyser)) {
      const auto set = benchmark_.pattern_sets.find(use.value);
      if (set == benchmark_.pattern_sets.end()) return;
      for (const Pattern& pattern : set->second.patterns)
        known.emplace(pattern.name.value, &pattern);
    }
    for (const Text& row : analyser.rows) {
      const auto pattern = known.find(row.value);
      if (pattern == known.end()) {
        diagnostics_.error(
            row.mark,
            fmt::format("rows: analyser '{}' has no pattern '{}'", analyser.name.value, row.value),
            rows_hint(row.value, keys_of(known)));
      } else if (pattern->second->mode != PatternMode::pattern) {
        diagnostics_.error(
            row.mark,
            fmt::format("rows: '{}' is computed, and a row comes from a match", row.value),
            "name a pattern that is searched for in the output");
      }
    }
  }

  // A pattern may not have the name of a parameter of the analysed step or of a step before it. The
  // analysis would fail because of this only after all work is done. Sets that are chosen by a
  // parameter are not checked here.
  void check_clashes(const Analyser& analyser) {
    const std::vector<Text> uses = used_pattern_sets(analyser);
    for (const Analyse& analyse : analyser.analyse) {
      std::map<std::string, Mark> parameters;
      std::set<std::string> seen;
      add_parameters(analyse.step.value, &seen, &parameters);
      for (const Text& use : uses) {
        const auto set = benchmark_.pattern_sets.find(use.value);
        if (set == benchmark_.pattern_sets.end()) continue;
        for (const Pattern& pattern : set->second.patterns) {
          const auto found = parameters.find(pattern.name.value);
          if (found == parameters.end() || !clashing_.insert(pattern.name.value).second) continue;
          diagnostics_.error(pattern.name.mark,
                             fmt::format("pattern '{}' has the name of a parameter of step '{}'",
                                         pattern.name.value, analyse.step.value),
                             "rename one of the two");
          diagnostics_.note(found->second, "the parameter is here");
        }
      }
    }
  }

  // Patterns of one name that search in one step's files make one value, and need one type.
  void check_pattern_types(const Analyser& analyser) {
    std::map<std::pair<std::string, std::string>, const Pattern*> known;  // by step and name
    for (const Analyse& analyse : analyser.analyse) {
      for (const AnalyseFile& file : analyse.files) {
        for (const Pattern* pattern : patterns_for(benchmark_, analyser, file)) {
          const auto [other, is_new] =
              known.emplace(std::pair(analyse.step.value, pattern->name.value), pattern);
          if (is_new || other->second->type == pattern->type) continue;
          if (!of_two_types_.insert(pattern).second) continue;
          diagnostics_.error(pattern->name.mark,
                             fmt::format("pattern '{}' has two types in files of step '{}'",
                                         pattern->name.value, analyse.step.value),
                             "give the patterns the same type, or different names");
          diagnostics_.note(other->second->name.mark, "the other pattern of this name is here");
        }
      }
    }
  }

  void add_parameters(const std::string& name, std::set<std::string>* seen,
                      std::map<std::string, Mark>* parameters) const {
    const Step* step = find_step(name);
    if (step == nullptr || !seen->insert(name).second) return;
    for (const Text& use : step->use) {
      const auto set = benchmark_.parameter_sets.find(use.value);
      if (set == benchmark_.parameter_sets.end()) continue;
      for (const Parameter& p : set->second.parameters)
        if (p.owner != Owner::platform) parameters->emplace(p.name.value, p.name.mark);
    }
    for (const Text& depend : step->depend) add_parameters(depend.value, seen, parameters);
  }

  // Names must be unique, because each output is written to result/NAME.dat.
  void check_unique(const Text& name) {
    const auto inserted = result_names_.emplace(name.value, name.mark);
    if (inserted.second) return;
    diagnostics_.error(name.mark, fmt::format("result '{}' is defined twice", name.value),
                       "tables, databases and syslogs of a benchmark need names of their own");
    diagnostics_.note(inserted.first->second, "the first one is here");
  }

  // The repeats of a value from the files have statistics. Repeats of an expression do not.
  void check_of(const Reference& reference) {
    if (reference.of.empty() ||
        sample_name(benchmark_, reference.column.value + "_" + reference.of))
      return;
    const std::vector<std::string> words = split_strip(statistics::suffix_choices(), "|");
    if (!contains(words, reference.of)) {
      diagnostics_.error(reference.condition.mark,
                         fmt::format("reference: `of: {}` is no statistic", reference.of),
                         "write one of " + join(words, ", "));
      return;
    }
    diagnostics_.error(reference.condition.mark,
                       fmt::format("reference: `of: {}` needs a pattern, and '{}' is not one",
                                   reference.of, reference.column.value),
                       "give the column `statistic: median` and leave out `of`");
  }

  void check_until(const Step& step) {
    const Text& metric = step.until.metric;
    check_pattern("until", metric);
    for (const Analyser& analyser : benchmark_.analysers) {
      for (const Analyse& analyse : analyser.analyse) {
        if (metric.value.empty() || analyse.step.value != step.name.value) continue;
        const std::set<const Pattern*> of_rows = patterns_of_rows(benchmark_, analyser);
        if (std::ranges::none_of(of_rows, [&](const Pattern* pattern) {
              return pattern->name.value == metric.value;
            }))
          continue;
        diagnostics_.error(
            metric.mark,
            fmt::format("until: '{}' may have a value for each row of analyser '{}', "
                        "and `until` judges one value of each repeat",
                        metric.value, analyser.name.value),
            "name a pattern of a set that defines none of `rows`");
      }
    }
  }

  // Checks that a key names a pattern.
  void check_pattern(const char* key, const Text& given) {
    if (given.value.empty()) return;
    std::vector<std::string> known;
    for (const Pattern& pattern : all_patterns(benchmark_)) known.push_back(pattern.name.value);
    if (contains(known, given.value)) return;
    diagnostics_.error(given.mark, fmt::format("{}: there is no pattern '{}'", key, given.value),
                       did_you_mean(given.value, known));
  }

  // Any other unit would be taken for seconds, and a rate of 35 msec for a steady one. A set that no
  // analyser is known to use may be one that a parameter chooses.
  void check_rates() {
    std::set<const Pattern*> known;
    for (const Analyser& analyser : benchmark_.analysers) {
      for (const RateTimes& rate : rate_times(benchmark_, analyser)) {
        known.insert(rate.rate);
        for (const auto& [file, time] : rate.times) check_unit(*rate.rate, *time);
      }
    }
    for (const auto& [name, set] : benchmark_.pattern_sets) {
      for (const Pattern& rate : set.patterns) {
        const std::string& over = rate.measured_over.value;
        if (!over.empty() && over == rate.name.value) {
          diagnostics_.error(rate.measured_over.mark,
                             fmt::format("measured_over: '{}' is measured over itself", over),
                             "name the pattern that has the seconds");
        }
        if (over.empty() || known.count(&rate) != 0) continue;
        for (const Pattern& time : set.patterns) {
          if (time.name.value == over) check_unit(rate, time);
        }
      }
    }
  }

  void check_unit(const Pattern& rate, const Pattern& time) {
    if (seconds_of_unit(time.unit) || !wrong_units_.insert({&rate, time.unit}).second) return;
    diagnostics_.error(rate.measured_over.mark,
                       fmt::format("measured_over: the unit '{}' of '{}' is none of time",
                                   time.unit, time.name.value),
                       "the units are ns, us, ms, s, min and h; without a unit it is seconds");
  }

  void check_result(const Result& result) {
    std::vector<std::string> analysers = names_of(benchmark_.analysers);
    for (const Text& use : result.use) require_later(use, analysers, "analyser", "result");
    for (const auto& output : result.outputs) {
      if (const auto* table = std::get_if<Table>(&output)) {
        std::string where = fmt::format("table '{}'", table->name.value);
        values_.check_columns(table->columns, where);
        values_.check_filter(table->filter, table->columns, where);
        values_.check_sort(table->sort, table->name.mark, where);
        std::vector<std::string> columns = names_of(table->columns);
        for (const Column& column : table->columns) {
          if (!column.relative_to.empty()) columns.push_back(column.column_title());
        }
        for (const Reference& reference : table->references) {
          require(reference.column, columns, "column", where);
          check_of(reference);
        }
      } else if (const auto* database = std::get_if<Database>(&output)) {
        const std::string where = fmt::format("database '{}'", database->name.value);
        values_.check_columns(database->keys, where);
        values_.check_filter(database->filter, database->keys, where);
      } else if (const auto* syslog = std::get_if<Syslog>(&output)) {
        const std::string where = fmt::format("syslog '{}'", syslog->name.value);
        values_.check_columns(syslog->keys, where);
        values_.check_filter(syslog->filter, syslog->keys, where);
        values_.check_sort(syslog->sort, syslog->name.mark, where);
      }
    }
    for (const Chart& chart : result.charts) check_chart(result, chart);
  }

  // A chart draws one table of its result. It finds the table's columns by name or by title.
  void check_chart(const Result& result, const Chart& chart) {
    const std::string where = fmt::format("chart '{}'", chart.name.value);
    const auto inserted = chart_names_.emplace(chart.name.value, chart.name.mark);
    if (!inserted.second) {
      diagnostics_.error(chart.name.mark, fmt::format("{} is defined twice", where),
                         "each chart is a file of its own, result/NAME.svg");
      diagnostics_.note(inserted.first->second, "the first one is here");
    }
    std::vector<std::string> tables;
    for (const Table* table : tables_of(result)) tables.push_back(table->name.value);
    if (chart.table.value.empty() && tables.size() != 1) {
      diagnostics_.error(chart.name.mark,
                         tables.empty() ? fmt::format("{} has no table to draw", where)
                                        : fmt::format("{} names no table, and its result has {}",
                                                      where, tables.size()),
                         tables.empty() ? "add a table to the same result"
                                        : "add `table:`; there are: " + join(tables, ", "));
    }
    require(chart.table, tables, "table", where);
    const Table* drawn = drawn_table(result, chart);
    if (drawn == nullptr) return;
    std::vector<std::string> columns;
    for (const Column& column : drawn->columns) {
      columns.push_back(column.name.value);
      if (!column.title.empty()) columns.push_back(column.title);
    }
    std::vector<Text> names =
        drawn_columns(chart.y, [&](const std::string& name) { return contains(columns, name); });
    const std::vector<Text> drawn_names = names;
    names.insert(names.end(), {chart.x, chart.series, chart.facet});
    for (const Text& name : names) {
      require(name, columns, "column", fmt::format("{} of table '{}'", where, drawn->name.value));
    }
    const auto shows_interval = [&](const Column& column) {
      return column.uncertainty == chart.error &&
             std::ranges::any_of(drawn_names, [&](const Text& name) {
               return column.name.value == name.value || column.title == name.value;
             });
    };
    const bool all_known =
        std::ranges::all_of(drawn_names, [&](const Text& n) { return contains(columns, n.value); });
    if (chart.error == Uncertainty::none || !all_known ||
        std::ranges::any_of(drawn->columns, shows_interval)) {
      return;
    }
    diagnostics_.error(
        chart.error_mark,
        fmt::format("{} draws an interval that column '{}' does not have", where, chart.y.value),
        "give the column the same `uncertainty`");
  }

  const Benchmark& benchmark_;
  const RemovedNames& removed_;
  Diagnostics& diagnostics_;
  const bool strict_;  // the file is run now, and is of our own
  const ValueNames values_;
  std::vector<std::string> steps_;
  std::unordered_map<std::string_view, const Step*> by_name_;
  std::vector<std::string> path_;
  std::set<std::string> open_, done_;  // open_: those of path_
  std::map<std::string, Mark> result_names_;
  std::map<std::string, Mark> chart_names_;
  std::set<std::string> clashing_;
  std::set<const Pattern*> of_two_types_;
  std::set<std::pair<const Pattern*, std::string>> wrong_units_;  // of rates' times
};

}  // namespace

void check_named(const Benchmark& benchmark, const RemovedNames& removed, bool strict,
                 const Sources& sources, Diagnostics& diagnostics) {
  NameChecker checker(benchmark, removed, strict, sources, diagnostics);
  checker.check_steps();
  checker.check_results();
}

void check_named_by_results(const Benchmark& benchmark, const RemovedNames& removed, bool strict,
                            const Sources& sources, Diagnostics& diagnostics) {
  NameChecker(benchmark, removed, strict, sources, diagnostics).check_results();
}

void check_pattern_names(const Benchmark& benchmark, const Analyser& analyser,
                         const Analyse& analyse, Diagnostics& diagnostics) {
  std::vector<Text> uses = analyser.use;
  for (const AnalyseFile& file : analyse.files)
    uses.insert(uses.end(), file.use.begin(), file.use.end());
  std::map<std::string, const Pattern*> known;
  std::set<const Pattern*> reported;
  for (const Text& use : uses) {
    const auto set = benchmark.pattern_sets.find(use.value);
    if (set == benchmark.pattern_sets.end()) continue;
    for (const Pattern& pattern : set->second.patterns) {
      const auto [other, is_new] = known.emplace(pattern.name.value, &pattern);
      if (is_new || other->second->value.value == pattern.value.value) continue;
      if (!reported.insert(&pattern).second) continue;
      diagnostics.error(
          pattern.name.mark,
          fmt::format("Cannot use patternset \"{}\" in analyser \"{}\", because there "
                      "are incompatible pattern name combinations: {}",
                      use.value, analyser.name.value, pattern.name.value),
          "give the patterns different names");
      diagnostics.note(other->second->name.mark, "the other pattern of this name is here");
    }
  }
}

}  // namespace tally
