#include "engine/results/rows/analyse.h"
#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "engine/results/read/changed_files.h"
#include "engine/results/read/match_statistics.h"
#include "engine/results/read/workpackage_view.h"
#include "engine/results/rows/analysed_patterns.h"
#include "engine/results/rows/derived.h"
#include "engine/results/rows/groups.h"
#include "engine/results/rows/row_maker.h"
#include "engine/results/rows/used_names.h"

namespace tally {
namespace {

// The values that the files of one step's groups hold, one line a group.
std::vector<Line> lines_of(const Analyse& analyse, const AnalysedPatterns& patterns,
                           const Groups& groups, WorkpackagesById* workpackages) {
  std::vector<Line> lines;
  const auto columns = std::make_shared<RowColumns>();
  for (const Group& group : groups.all()) {
    if (group.members.front()->step != analyse.step.value) continue;
    Line& line = lines.emplace_back();
    line.values = Cells(columns);
    line.parameters = &group.members.front()->values;
    for (const auto& [name, statistics] : group.all.found) {
      statistics.store(name, [&](const std::string& one, Value value) {
        line.values.set(one, std::move(value));
      });
    }
    for (const Pattern* pattern : patterns.of(&analyse)) {
      if (patterns.applies(*pattern, group.all.files)) {
        add_default(*pattern, line.values);
      } else {
        line.left_out.push_back(pattern);
      }
    }
    workpackages->push_back(group.members.front());
  }
  return lines;
}

// The values from each group's own files, in the order of steps and ids. Problems are not reported:
// analyse() does it when it makes the rows.
std::vector<WorkpackageResult> workpackage_results(const Benchmark& benchmark,
                                                   const Analyser& analyser,
                                                   const AnalysedPatterns& known,
                                                   const Groups& groups, Evaluator& evaluator) {
  std::vector<WorkpackageResult> results;
  Diagnostics said_elsewhere;
  for (const Analyse& analyse : analyser.analyse) {
    const std::vector<const Pattern*>& patterns = known.of(&analyse);
    std::vector<const Pattern*> derived;
    for (const Pattern* pattern : patterns) {
      if (pattern->mode != PatternMode::pattern) derived.push_back(pattern);
    }
    WorkpackagesById workpackages;
    std::vector<Line> lines = lines_of(analyse, known, groups, &workpackages);
    derive({benchmark, evaluator, said_elsewhere}, derived, lines);
    for (size_t i = 0; i < lines.size(); ++i) {
      WorkpackageResult& result = results.emplace_back();
      result.id = workpackages[i]->id;
      result.step = analyse.step.value;
      for (const Pattern* pattern : patterns) {
        for (const auto& [which, name] : all_statistics(pattern->name.value)) {
          if (const Value* value = lines[i].values.find(name))
            result.values.emplace_back(name, *value);
        }
      }
    }
  }
  return results;
}

// Appends what each workpackage that ended well printed. Each member's own values must have been
// kept (Group::own).
void take_samples(const Benchmark& benchmark, const Analyser& analyser, const Groups& groups,
                  std::vector<Sample>* samples) {
  std::map<std::pair<const Analyse*, std::string>, std::string> definitions;
  for (const Group& group : groups.all()) {
    for (size_t i = 0; i < group.members.size(); ++i) {
      // A workpackage that goes on may print more.
      if (!finished_well(group.members[i]->state)) continue;
      // Changed output is no measurement, and what the journal has kept stays.
      if (!group.members[i]->changes.empty()) continue;
      const Analyse* analyse = groups.find(group.members[i]->step);
      if (analyse == nullptr) continue;
      const int id = group.members[i]->id;
      const auto definition = [&](const std::string& name) -> const std::string& {
        std::string& known = definitions[{analyse, name}];
        if (known.empty()) known = definition_of(benchmark, analyser, *analyse, name);
        return known;
      };
      const auto in_row = [&](const std::string& name, int row) {
        return row < 0 ? definition(name) : definition_of_row(definition(name), analyser, row);
      };
      const auto take = [&](const Found& found, const StatedSeconds& seconds, int row) {
        for (const auto& [name, statistics] : found) {
          if (statistics.count() == 0) continue;
          samples->push_back({id, analyser.name.value, name, in_row(name, row),
                              statistics.first().str(), statistics.packed()});
        }
        for (const auto& [time, stated] : seconds) {
          const std::string& name = time.time.second->name.value;
          const std::string text = fmt::format("{}", stated);
          samples->push_back({id, analyser.name.value, name,
                              definition_of_seconds(in_row(name, row), time), text, text});
        }
      };
      const InFiles& files = group.of_member(i);
      take(files.found, files.seconds, -1);
      int number = 0;
      for (const MatchedRow& row : files.rows) take(row.found, row.seconds, number++);
    }
  }
}

// Reports a step or a pattern set that tags left out, with JUBE's message.
bool lacks_something(const Benchmark& benchmark, const Analyser& analyser,
                     Diagnostics& diagnostics) {
  const auto lacks = [&](const std::vector<Text>& use) {
    for (const Text& name : use) {
      const bool chosen_later = has_dollar(name.value);
      if (chosen_later || benchmark.pattern_sets.count(name.value) > 0) continue;
      diagnostics.error(name.mark, "<patternset name=\"" + name.value + "\"> used but not found",
                        "the tags leave it out");
      return true;
    }
    return false;
  };
  if (lacks(analyser.use)) return true;
  for (const Analyse& analyse : analyser.analyse) {
    const auto named = [&](const Step& step) { return step.name.value == analyse.step.value; };
    if (std::ranges::none_of(benchmark.steps, named)) {
      diagnostics.error(analyse.step.mark,
                        "Could not find <step name=\"" + analyse.step.value +
                            "\"> when using analyser \"" + analyser.name.value + "\"",
                        "the tags leave the step out: give the analyser the same tag");
      return true;
    }
    for (const AnalyseFile& file : analyse.files) {
      if (lacks(file.use)) return true;
    }
  }
  return false;
}

// Reports a column name that would have two meanings.
bool clashes(const AnalysedPatterns& patterns, const Groups& groups, Diagnostics& diagnostics) {
  bool found = false;
  for (const Pattern* pattern : patterns.all()) {
    const std::string& name = pattern->name.value;
    for (const WorkpackageView* workpackage : groups.by_id()) {
      if (groups.find(workpackage->step) == nullptr) continue;
      for (const auto& [parameter, value] : workpackage->values) {
        if (parameter != name) continue;
        diagnostics.error(pattern->name.mark,
                          fmt::format("pattern '{}' has the name of a parameter of step '{}'", name,
                                      workpackage->step),
                          "rename one of the two");
        found = true;
      }
      if (found) break;
    }
  }
  return found;
}

// Notes in `records` the workpackages that failed, or have not ended, before an analysed step could
// start, so that rows or repeats of it are missing. That some have not ended is noted of the run.
void note_missing_rows(const Benchmark& benchmark, const Analyser& analyser,
                       const UsedNames& used_names, const Groups& groups, Records& records) {
  if (!benchmark.rules.rows_are_marked) return;
  const auto& analysed = analyser.analyse;
  ParameterValues parameters(used_names, benchmark.rules.fractions_are_kept);
  std::map<std::pair<std::string, std::string>, int> open;  // step, missing rows' step
  for (const WorkpackageView* workpackage : groups.by_id()) {
    const State state = workpackage->state;
    if (finished_well(state) || groups.has_row(*workpackage)) continue;
    const std::string& before = workpackage->step;
    const auto after = std::ranges::find_if(analysed, [&](const Analyse& analyse) {
      return depends_on(benchmark, analyse.step.value, before);
    });
    if (after == analysed.end()) continue;
    // Another repeat of it may have led to the row.
    const PlannedRepeats repeats = groups.planned_repeats(*workpackage);
    const bool repeated = repeats.count > 1;
    if (!repeated || (!repeats.any_well && repeats.first == workpackage->id)) {
      Record& row = records.missing.emplace_back();
      row.id = workpackage->id;
      row.point = {groups.points(), workpackage->id};
      row.analyser = analyser.name.value;
      row.step = before;
      row.state = state;
      row.values = Cells(records.columns);
      parameters.add(*workpackage, true, row.values, records);
    }
    if (!has_failed(state)) {
      ++open[{before, after->step.value}];
      continue;
    }
    for (const std::string& note : workpackage->notes) {
      records.notes.push_back(fmt::format("{}; {} of step '{}' are missing", note,
                                          repeated ? "repeats or rows" : "rows",
                                          after->step.value));
      records.missing_rows.push_back(records.notes.back());
    }
  }
  for (const auto& [steps, count] : open)
    records.missing_rows.push_back(fmt::format(
        "{} workpackage{} of step '{}' {} not ended; rows of step '{}' are missing", count,
        count == 1 ? "" : "s", steps.first, count == 1 ? "has" : "have", steps.second));
}

// Values that no table can show: a pattern found several in a file, and only the first is asked for.
void note_values_left_out(const Benchmark& benchmark, const Analyser& analyser,
                          const AnalysedPatterns& patterns, const Scanner& scanner,
                          Diagnostics& diagnostics) {
  if (!benchmark.rules.missing_values_are_reported || !analyser.rows.empty()) return;
  long long most = 0;
  std::vector<const Pattern*> left;
  for (const Pattern* pattern : scanner.several(&most)) {
    const auto& kept = patterns.statistics(pattern->name.value);
    if (kept.size() == 1 && kept.front().which == MatchStatistic::value) left.push_back(pattern);
  }
  if (left.empty()) return;
  std::vector<std::string> names;
  for (const Pattern* pattern : left) names.push_back("'" + pattern->name.value + "'");
  const std::string& name = left.front()->name.value;
  diagnostics.remark(
      left.front()->value.mark,
      fmt::format("{} {} up to {} different values in an output, and the first is shown",
                  join(names, ", "), names.size() == 1 ? "has" : "have", most),
      fmt::format("{0}_last, {0}_max, {0}_avg and the like are columns, too; `rows: {0}` makes a "
                  "row of each match",
                  name));
}

Status mark_changed_files(const Benchmark& benchmark, const std::vector<WorkpackageView>& views,
                          const std::vector<int>& suspects, std::vector<WorkpackageView>* marked) {
  for (const WorkpackageView& view : views) {
    if (view.changed_files != nullptr)
      return view.changed_files->mark(benchmark, views, suspects, marked);
  }
  return Status::ok();
}

void note_changed(const Benchmark& benchmark, const std::vector<WorkpackageView>& views,
                  Records& records, Diagnostics& diagnostics) {
  const std::string note = changed_note(benchmark, views);
  if (note.empty()) return;
  diagnostics.remark({}, note);
  records.of_run.push_back(note);
  records.changed = benchmark.rules.values_are_kept;
}

}  // namespace

Records analyse(const ResultContext& context, const Analyser& analyser,
                const std::vector<WorkpackageView>& workpackages,
                std::vector<WorkpackageResult>* each, std::vector<Sample>* samples) {
  const Benchmark& benchmark = context.benchmark;
  Diagnostics& diagnostics = context.diagnostics;
  if (lacks_something(benchmark, analyser, diagnostics)) return {};
  const UsedNames used_names(benchmark);
  const AnalysedPatterns patterns(benchmark, analyser, used_names);
  Groups groups(benchmark, analyser, workpackages);
  if (clashes(patterns, groups, diagnostics)) return {};
  groups.make();
  const Scanner scanner = scan_groups(benchmark, analyser, used_names.repeats(), groups);
  if (!scanner.suspects().empty()) {
    std::vector<WorkpackageView> marked;
    const Status looked = mark_changed_files(benchmark, workpackages, scanner.suspects(), &marked);
    if (!looked) diagnostics.error({}, looked.message());
    if (!marked.empty()) {
      Records records = analyse(context, analyser, marked, each, samples);
      note_changed(benchmark, marked, records, diagnostics);
      return records;
    }
  }
  scanner.report(diagnostics);
  note_values_left_out(benchmark, analyser, patterns, scanner, diagnostics);
  if (samples != nullptr && used_names.repeats())
    take_samples(benchmark, analyser, groups, samples);
  if (each != nullptr)
    *each = workpackage_results(benchmark, analyser, patterns, groups, context.evaluator);
  Records records = make_rows({benchmark, analyser, used_names, patterns, groups},
                              context.evaluator, diagnostics);
  note_missing_rows(benchmark, analyser, used_names, groups, records);
  records.unmatched = scanner.unmatched();
  return records;
}

namespace {

const Analyser* find_analyser(const Benchmark& benchmark, const std::string& name) {
  for (const Analyser& analyser : benchmark.analysers) {
    if (analyser.name.value == name) return &analyser;
  }
  return nullptr;
}

}  // namespace

void report_unmatched(const Records& records, bool of_run, Diagnostics& diagnostics) {
  for (const Unmatched& one : records.unmatched) {
    if (one.is_error && of_run) {
      diagnostics.error(one.mark, one.text,
                        "a pattern that may have no value has a 'default', or its column a "
                        "'null_value'; a mended file is read by `result RUN -u FILE`, and nothing "
                        "runs again");
    } else {
      diagnostics.warning(one.mark, one.text);
    }
  }
}

Records result_records(const ResultContext& context, const Result& result,
                       const std::vector<WorkpackageView>& views, std::vector<Sample>* samples) {
  const Benchmark& benchmark = context.benchmark;
  Records records;
  for (const Text& use : result.use) {
    if (const Analyser* analyser = find_analyser(benchmark, use.value)) {
      append(records, analyse(context, *analyser, views, nullptr, samples));
    } else {
      context.diagnostics.error(use.mark,
                                fmt::format("<analyser name=\"{}\"> not found", use.value),
                                "the tags leave it out: give the result the same tag");
    }
  }
  if (std::string note = unfinished_note(benchmark, views); !note.empty())
    records.of_run.insert(records.of_run.begin(), std::move(note));
  return records;
}

}  // namespace tally
