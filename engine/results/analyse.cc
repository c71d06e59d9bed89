#include "engine/results/analyse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/results/derived.h"
#include "engine/results/groups.h"
#include "engine/results/linked_values.h"
#include "engine/results/missing_rows.h"
#include "engine/results/parameter_values.h"
#include "engine/results/scan.h"
#include "engine/results/scan_groups.h"
#include "engine/results/wanted.h"
#include "engine/workflow/sample_names.h"

namespace tally {
namespace {

// The state of a row of several workpackages: that of the one that has come farthest.
State nearest_to_done(State a, State b) {
  const auto rank = [](State state) {
    constexpr std::array kOrder = {State::done,     State::running, State::waiting, State::pending,
                                   State::expected, State::failed,  State::lost};
    return std::find(kOrder.begin(), kOrder.end(), state);
  };
  return rank(b) < rank(a) ? b : a;
}

class Analysis {
 public:
  Analysis(const Benchmark& benchmark, const Analyser& analyser,
           const std::vector<WorkpackageView>& workpackages,
           const std::set<std::string>& more_values, Evaluator& evaluator, Diagnostics& diagnostics)
      : benchmark_(benchmark),
        analyser_(analyser),
        evaluator_(evaluator),
        diagnostics_(diagnostics),
        wanted_(benchmark, more_values),
        parameters_(wanted_, !benchmark.as_jube),
        groups_(benchmark, analyser, workpackages),
        linked_(benchmark, analyser) {}

  Records run(std::vector<WorkpackageResult>* each, std::vector<Sample>* samples) {
    if (lacks_something() || clashes()) return {};
    groups_.make();
    const Scanner scanner = scan_groups(benchmark_, analyser_, wanted_.repeats(), groups_);
    scanner.report(diagnostics_);
    if (samples != nullptr && wanted_.repeats()) take_samples(samples);
    if (each != nullptr) *each = workpackage_results();
    Records records = make_records();
    records.unmatched = scanner.unmatched();
    return records;
  }

 private:
  void take_samples(std::vector<Sample>* samples) const {
    std::map<std::pair<const Analyse*, std::string>, std::string> definitions;
    for (const Group& group : groups_.all()) {
      for (size_t i = 0; i < group.members.size(); ++i) {
        // What goes on may print more.
        if (!finished_well(group.members[i]->state)) continue;
        const Analyse* analyse = groups_.find(group.members[i]->step);
        for (const auto& [name, statistics] : group.found_of(i)) {
          if (analyse == nullptr || statistics.count() == 0) continue;
          std::string& definition = definitions[{analyse, name}];
          if (definition.empty()) definition = definition_of(benchmark_, analyser_, *analyse, name);
          samples->push_back({group.members[i]->id, analyser_.name.value, name, definition,
                              statistics.first().str(), statistics.packed()});
        }
      }
    }
  }

  // Reports a step or a pattern set that tags left out, with JUBE's message.
  bool lacks_something() {
    const auto lacks = [&](const std::vector<Text>& use) {
      for (const Text& name : use) {
        const bool chosen_later = name.value.find('$') != std::string::npos;
        if (chosen_later || benchmark_.pattern_sets.count(name.value) > 0) continue;
        diagnostics_.error(name.mark, "<patternset name=\"" + name.value + "\"> used but not found",
                           "the tags leave it out");
        return true;
      }
      return false;
    };
    if (lacks(analyser_.use)) return true;
    for (const Analyse& analyse : analyser_.analyse) {
      const auto named = [&](const Step& step) { return step.name.value == analyse.step.value; };
      if (std::none_of(benchmark_.steps.begin(), benchmark_.steps.end(), named)) {
        diagnostics_.error(analyse.step.mark,
                           "Could not find <step name=\"" + analyse.step.value +
                               "\"> when using analyser \"" + analyser_.name.value + "\"",
                           "the tags leave the step out: give the analyser the same tag");
        return true;
      }
      for (const AnalyseFile& file : analyse.files) {
        if (lacks(file.use)) return true;
      }
    }
    return false;
  }

  // The patterns of all steps, or of one.
  std::vector<const Pattern*> all_patterns(const Analyse* of = nullptr) const {
    std::vector<Text> use = analyser_.use;
    for (const Analyse& analyse : analyser_.analyse) {
      if (of != nullptr && of != &analyse) continue;
      for (const AnalyseFile& file : analyse.files) {
        use.insert(use.end(), file.use.begin(), file.use.end());
      }
    }
    std::vector<const Pattern*> patterns;
    std::set<std::string> seen;
    for (const Pattern* pattern : patterns_of(benchmark_, use)) {
      if (seen.insert(pattern->name.value).second) patterns.push_back(pattern);
    }
    return patterns;
  }

  // Reports a column name that would have two meanings.
  bool clashes() {
    bool found = false;
    for (const Pattern* pattern : all_patterns()) {
      const std::string& name = pattern->name.value;
      for (const WorkpackageView* workpackage : groups_.by_id()) {
        if (groups_.find(workpackage->step) == nullptr) continue;
        for (const auto& [parameter, value] : workpackage->values) {
          if (parameter != name) continue;
          diagnostics_.error(pattern->name.mark,
                             fmt::format("pattern '{}' has the name of a parameter of step '{}'",
                                         name, workpackage->step),
                             "rename one of the two");
          found = true;
        }
        if (found) break;
      }
    }
    return found;
  }

  // The values from each group's own files, in the order of steps and ids.
  std::vector<WorkpackageResult> workpackage_results() {
    std::vector<WorkpackageResult> results;
    Diagnostics said_elsewhere;
    for (const Analyse& analyse : analyser_.analyse) {
      const std::vector<const Pattern*> patterns = all_patterns(&analyse);
      std::vector<const Pattern*> derived;
      std::vector<Line> lines;
      std::vector<const WorkpackageView*> workpackages;
      for (const Pattern* pattern : patterns) {
        if (pattern->mode != PatternMode::pattern) derived.push_back(pattern);
      }
      for (const Group& group : groups_.all()) {
        if (group.members.front()->step != analyse.step.value) continue;
        Line& line = lines.emplace_back();
        line.parameters = &group.members.front()->values;
        for (const auto& [name, statistics] : group.found) statistics.store(name, line.values);
        for (const Pattern* pattern : patterns) {
          if (group.found.count(pattern->name.value) != 0) add_default(*pattern, line.values);
        }
        workpackages.push_back(group.members.front());
      }
      derive(derived, lines, evaluator_, !benchmark_.as_jube, said_elsewhere);
      for (size_t i = 0; i < lines.size(); ++i) {
        WorkpackageResult& result = results.emplace_back();
        result.id = workpackages[i]->id;
        result.step = analyse.step.value;
        for (const Pattern* pattern : patterns) {
          for (const char* suffix :
               {"", "_first", "_min", "_max", "_sum", "_sum2", "_cnt", "_avg", "_std", "_last"}) {
            const auto found = lines[i].values.find(pattern->name.value + suffix);
            if (found != lines[i].values.end()) result.values.emplace_back(*found);
          }
        }
      }
    }
    return results;
  }

  Records make_records() {
    patterns_ = all_patterns();
    for (const Pattern* pattern : patterns_) {
      by_name_[pattern->name.value] = pattern;
      if (pattern->mode != PatternMode::pattern) derived_.push_back(pattern);
    }
    find_bases();
    find_printed();
    choose_statistics();
    std::vector<const Group*> leaves;
    std::vector<Line> lines;
    for (const Group& group : groups_.all()) {
      if (!group.leaf) continue;
      std::vector<const Found*> above;
      for (const Group* ancestor : groups_.ancestors(group)) above.push_back(&ancestor->found);
      lines.push_back(make_line(group, *group.members.front(), group.found, above));
      lines.back().failed = !groups_.any_ended_well(group);
      leaves.push_back(&group);
    }
    derive(derived_, lines, evaluator_, !benchmark_.as_jube, diagnostics_);
    Records records;
    records.rows.reserve(lines.size());
    for (size_t i = 0; i < lines.size(); ++i)
      records.rows.push_back(make_record(*leaves[i], std::move(lines[i].values), records));
    lines = {};
    if (wanted_.repeats()) add_repeats(leaves, records);
    for (const Pattern* pattern : patterns_) describe(*pattern, benchmark_.as_jube, records);
    note_missing_rows(benchmark_, analyser_, groups_, records);
    return records;
  }

  // A computed pattern may use any statistic, and also a text that was found may name one. Without
  // such patterns, only those that the results show are computed.
  void choose_statistics() {
    for (const Pattern* pattern : patterns_) {
      const std::string& name = pattern->name.value;
      std::vector<StoredStatistic> all = all_statistics(name);
      if (derived_.empty()) {
        all.erase(std::remove_if(all.begin(), all.end(),
                                 [&](const StoredStatistic& one) {
                                   return one.name != name && by_name_.count(one.name) == 0 &&
                                          !wanted_.has(one.name);
                                 }),
                  all.end());
      }
      statistics_.emplace(name, std::move(all));
    }
    for (const Analyse& analyse : analyser_.analyse)
      patterns_of_step_.emplace(&analyse, all_patterns(&analyse));
  }

  // The patterns that each step prints in some workpackage. Where such a value is missing, that of the
  // step before is another number and does not stand in for it.
  void find_printed() {
    if (benchmark_.as_jube) return;
    for (const Group& group : groups_.all()) {
      for (const auto& [name, statistics] : group.found) {
        if (statistics.count() > 0) printed_.insert({group.members.front()->step, name});
      }
    }
  }

  // `step`: of the row, where the values are those of an earlier step.
  void add_found(const Found& found, std::map<std::string, Value>& values,
                 const std::string* step = nullptr) const {
    for (const auto& [name, statistics] : found) {
      if (step != nullptr && printed_.count({*step, name}) != 0) continue;
      if (statistics.count() == 0 || values.count(name) != 0) continue;  // the child's own value
      statistics.store(statistics_.at(name), values);
    }
  }

  // The line of a group, or of one of its members. `own`: what its files hold; `above`: those of
  // the workpackages it depends on, nearest first.
  Line make_line(const Group& group, const WorkpackageView& shown, const Found& own,
                 const std::vector<const Found*>& above) const {
    Line line;
    line.parameters = &shown.values;
    add_found(own, line.values);
    // JUBE sets a pattern's default for every file that is scanned for it. Therefore the default
    // of the last step wins even if a parent's file had a match. A pattern whose files are all
    // missing has no value.
    for (const Pattern* pattern : patterns_of_step_.at(groups_.find(shown.step)))
      add_default_if_sought(*pattern, group, line.values);
    for (const Found* found : above) add_found(*found, line.values, &shown.step);
    for (const auto& [name, pattern] : by_name_)
      add_default_if_sought(*pattern, group, line.values);
    return line;
  }

  void add_default_if_sought(const Pattern& pattern, const Group& group,
                             std::map<std::string, Value>& values) const {
    if (pattern.default_value && groups_.was_sought(pattern.name.value, group))
      add_default(pattern, values);
  }

  // Whether the row is that of one workpackage, which depends on no repeated one. Then the only
  // repeat has the row's values.
  bool is_single(const Group& group) const {
    const auto single = [](const Group& one) { return one.members.size() == 1; };
    const std::vector<const Group*> above = groups_.ancestors(group);
    return single(group) && groups_.planned_repeats(*group.members.front()).count == 1 &&
           std::all_of(above.begin(), above.end(), [&](const Group* one) { return single(*one); });
  }

  std::vector<Repeat> single_repeat(const Group& group, const Record& row) const {
    if (!groups_.counts(*group.members.front())) return {};
    std::vector<Repeat> repeats(1);
    for (const auto& [name, value] : row.values) {
      if (wanted_.has_in_repeats(name)) repeats.front().values.emplace(name, value);
    }
    return repeats;
  }

  // Adds to each row the values of the workpackages that it is made of, those that count.
  void add_repeats(const std::vector<const Group*>& leaves, Records& records) {
    std::vector<Line> lines;
    std::vector<std::pair<size_t, const WorkpackageView*>> places;  // row, workpackage
    for (size_t row = 0; row < leaves.size(); ++row) {
      const Group& group = *leaves[row];
      if (derived_.empty() && is_single(group)) {
        records.rows[row].repeats = single_repeat(group, records.rows[row]);
        continue;
      }
      std::vector<size_t> order;
      for (size_t i = 0; i < group.members.size(); ++i) {
        if (groups_.counts(*group.members[i]) && !shares_work(group, *group.members[i]))
          order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return group.members[a]->iteration < group.members[b]->iteration;
      });
      for (const size_t i : order) {
        const WorkpackageView& member = *group.members[i];
        const std::vector<Groups::FoundAbove> above = groups_.found_above(member);
        std::vector<const Found*> found;
        for (const Groups::FoundAbove& one : above) found.push_back(one.found);
        lines.push_back(make_line(group, member, group.found_of(i), found));
        places.emplace_back(row, &member);
        records.rows[row].repeats.emplace_back().from.set(
            sources_of(member, group.found_of(i), above, records.rows[row]));
      }
    }
    Diagnostics said_of_the_rows;
    derive(derived_, lines, evaluator_, !benchmark_.as_jube, said_of_the_rows);
    std::map<size_t, size_t> filled;  // repeats of each row
    for (size_t i = 0; i < lines.size(); ++i) {
      std::map<std::string, Value> values =
          all_values(*places[i].second, std::move(lines[i].values), records);
      erase_values(values, [&](const auto& name) { return !wanted_.has_in_repeats(name); });
      const size_t row = places[i].first;
      records.rows[row].repeats[filled[row]++].values = std::move(values);
    }
  }

  // The workpackages that a repeat has values from, by the name of each value that is not its own.
  std::map<std::string, std::set<int>> sources_of(const WorkpackageView& member, const Found& own,
                                                  const std::vector<Groups::FoundAbove>& above,
                                                  Record& row) const {
    std::map<std::string, std::set<int>> from;
    std::set<std::string> known;  // patterns that have a value of their own
    for (const auto& [name, statistics] : own) {
      if (statistics.count() > 0) known.insert(name);
    }
    add_linked_sources(member, known, from, row);
    for (const Groups::FoundAbove& one : above) {
      for (const auto& [name, statistics] : *one.found) {
        if (statistics.count() == 0 || known.count(name) != 0 || from.count(name) != 0) continue;
        if (printed_.count({member.step, name}) != 0) continue;
        const int source = one.workpackage->done_by();
        for (const StoredStatistic& stored : statistics_.at(name)) from[stored.name] = {source};
        from[name] = {source};
        row.repeats_above.edit().try_emplace(source,
                                             groups_.planned_repeats(*one.workpackage).count);
      }
    }
    if (from.empty()) return from;
    for (const Pattern* pattern : derived_) {
      std::set<int> sources;
      if (!is_own(*pattern, known, from, &sources)) from[pattern->name.value] = sources;
    }
    return from;
  }

  // Values that were read through a link are those of the workpackages that it leads to.
  void add_linked_sources(const WorkpackageView& member, std::set<std::string>& known,
                          std::map<std::string, std::set<int>>& from, Record& row) const {
    const std::vector<LinkedFile>& files = linked_.of(groups_.find(member.step));
    if (files.empty()) return;
    for (const WorkpackageView* above : groups_.ancestors(member)) {
      for (const LinkedFile& linked : files) {
        if (linked.steps.count(above->step) == 0) continue;
        for (const std::string& name : linked.alone) {
          if (known.count(name) == 0 && from.count(name) == 0) continue;
          known.erase(name);
          for (const StoredStatistic& stored : statistics_.at(name))
            from[stored.name].insert(above->done_by());
          from[name].insert(above->done_by());
          row.repeats_above.edit().try_emplace(above->done_by(),
                                               groups_.planned_repeats(*above).count);
        }
      }
    }
  }

  // Whether a computed pattern uses a value of the repeat itself. Otherwise *sources gets where its
  // values come from.
  bool is_own(const Pattern& pattern, const std::set<std::string>& known,
              const std::map<std::string, std::set<int>>& from, std::set<int>* sources) const {
    for (const std::string& name : bases_.at(pattern.name.value)) {
      const auto source = from.find(name);
      if (source != from.end()) sources->insert(source->second.begin(), source->second.end());
      const bool found = by_name_.count(name) != 0 || known.count(name) != 0;
      const bool varies = starts_with(name, "jube_wp_") || groups_.varies(name);
      if (source == from.end() && (found || varies)) return true;
    }
    return sources->empty();
  }

  // What each computed pattern is computed from: names of patterns that are read from files, and of
  // parameters.
  void find_bases() {
    for (const Pattern* pattern : derived_) {
      std::set<std::string>& bases = bases_[pattern->name.value];
      std::vector<const Pattern*> open = {pattern};
      std::set<const Pattern*> seen;
      while (!open.empty()) {
        const Pattern* one = open.back();
        open.pop_back();
        if (!seen.insert(one).second) continue;
        for (const std::string& name : referenced_names(one->value.value)) {
          const auto known = by_name_.find(name);
          if (known != by_name_.end() && known->second->mode != PatternMode::pattern) {
            open.push_back(known->second);
          } else {
            bases.insert(name);
          }
        }
      }
    }
  }

  static void add_default(const Pattern& pattern, std::map<std::string, Value>& values) {
    const std::string& name = pattern.name.value;
    if (pattern.mode != PatternMode::pattern || !pattern.default_value || values.count(name) != 0) {
      return;
    }
    if (std::optional<Value> value = make_value(*pattern.default_value, pattern.type)) {
      store_default(name, *value, pattern.type, values);
    } else {
      store_default(name, {*pattern.default_value}, ValueType::string, values);
    }
  }

  static void describe(const Pattern& pattern, bool as_jube, Records& records) {
    const std::string& name = pattern.name.value;
    const bool described = records.types.count(name) != 0;  // a pattern of the same name
    records.types[name] = pattern.type;
    if (pattern.unit.empty()) return;
    for (const char* suffix : {"", "_first", "_last", "_min", "_max", "_avg", "_sum", "_std"}) {
      std::string& unit = records.units[name + suffix];
      if (described && !unit.empty() && unit != pattern.unit)
        records.other_units.try_emplace(name + suffix, unit);
      unit = pattern.unit;
    }
    if (as_jube) return;
    for (const char* suffix : {"_median", "_mad", "_p05", "_p95", "_ci_low", "_ci_high"})
      records.units.try_emplace(name + suffix, pattern.unit);
  }

  template <typename Unwanted>
  static void erase_values(std::map<std::string, Value>& values, const Unwanted& unwanted) {
    for (auto at = values.begin(); at != values.end();)
      at = unwanted(at->first) ? values.erase(at) : std::next(at);
  }

  // The wanted ones of `values` and of the workpackage's own and its parents' parameters.
  std::map<std::string, Value> all_values(const WorkpackageView& shown,
                                          std::map<std::string, Value>&& values, Records& records) {
    erase_values(values, [&](const auto& name) { return !wanted_.has(name); });
    parameters_.add(shown, true, values, records);
    for (const WorkpackageView* workpackage : groups_.ancestors(shown))
      parameters_.add(*workpackage, false, values, records);
    if (wanted_.has("jube_res_analyser"))
      values.try_emplace("jube_res_analyser", Value{analyser_.name.value});
    return std::move(values);
  }

  Record make_record(const Group& group, std::map<std::string, Value>&& values, Records& records) {
    Record record;
    const WorkpackageView& shown = *group.members.front();
    record.values = all_values(shown, std::move(values), records);
    const bool some_count = groups_.any_counts(group);
    for (const auto& [name, statistics] : group.found) {
      if (statistics.count() == 0) record.unmatched.push_back(name);
    }
    record.id = shown.id;
    record.run = shown.run;
    record.analyser = analyser_.name.value;
    record.step = shown.step;
    if (!analyser_.reduce) record.iteration = shown.iteration;
    const PlannedRepeats planned = groups_.planned_repeats(shown);
    record.all_repeats = std::max(planned.count, static_cast<int>(group.members.size()));
    record.state = shown.state;
    record.reused = is_reused(group);
    record.no_job_use = shown.no_job_use;
    for (const WorkpackageView* member : group.members) {
      const bool left_out = some_count && !groups_.counts(*member);
      for (const std::string& note : member->notes)
        record.notes.push_back(left_out ? note + "; it is left out of the row" : note);
      if (!left_out) record.state = nearest_to_done(record.state, member->state);
      if (!left_out) record.add_disturbance(member->disturbance);
    }
    if (planned.open != State::done) record.state = planned.open;
    if (!benchmark_.as_jube) take_marks_of_ancestors(group, record);
    return record;
  }

  // Whether another member of the group did the member's work: both show one measurement.
  static bool shares_work(const Group& group, const WorkpackageView& member) {
    return member.worker >= 0 &&
           std::any_of(group.members.begin(), group.members.end(),
                       [&](const WorkpackageView* one) { return one->id == member.worker; });
  }

  // Whether the group shows work of others.
  bool is_reused(const Group& group) const {
    return std::any_of(group.members.begin(), group.members.end(),
                       [&](const WorkpackageView* member) {
                         return member->reused && !shares_work(group, *member);
                       });
  }

  // Whether a result shows the pattern, a statistic of it, or what is computed from these.
  bool is_shown(const std::string& pattern) const {
    const auto& stored = statistics_.at(pattern);
    const auto shown = [&](const std::string& name) {
      return wanted_.has(name) || wanted_.has_in_repeats(name);
    };
    return shown(pattern) ||
           std::any_of(stored.begin(), stored.end(),
                       [&](const StoredStatistic& one) { return wanted_.has(one.name); }) ||
           std::any_of(derived_.begin(), derived_.end(), [&](const Pattern* one) {
             return shown(one->name.value) && is_base(pattern, *one);
           });
  }

  bool is_base(const std::string& pattern, const Pattern& derived) const {
    const std::set<std::string>& bases = bases_.at(derived.name.value);
    return std::any_of(bases.begin(), bases.end(), [&](const std::string& base) {
      return pattern_of(benchmark_, base) == pattern;
    });
  }

  // `origins`: the patterns that have a value, and whether it is reused. A computed one is if all
  // that it is computed from is.
  void note_reused(const std::map<std::string, bool>& origins, bool own, Record& record) const {
    std::set<std::string> names;
    for (const auto& [name, reused] : origins) {
      if (reused) names.insert(name);
    }
    if (names.empty()) return;
    for (const Pattern* pattern : derived_) {
      bool measured = false;
      bool reused = own;
      for (const std::string& base : bases_.at(pattern->name.value)) {
        const auto origin = origins.find(pattern_of(benchmark_, base));
        if (origin == origins.end()) continue;
        (origin->second ? reused : measured) = true;
      }
      if (reused && !measured) names.insert(pattern->name.value);
    }
    record.reused_values.set(std::move(names));
  }

  // The same for a value that was read in the folder of the row's step and that another one wrote.
  void take_marks_of_linked(const Group& group, std::map<std::string, bool>& known,
                            Record& record) const {
    const std::vector<LinkedFile>& files = linked_.of(groups_.find(record.step));
    if (files.empty()) return;
    const std::vector<const WorkpackageView*> all = groups_.ancestors(group.members);
    for (const LinkedFile& linked : files) {
      Group above;
      for (const WorkpackageView* one : all) {
        if (linked.steps.count(one->step) != 0) above.members.push_back(one);
      }
      const bool reused = is_reused(above);
      bool gives = false;
      for (const std::string& name : linked.patterns) {
        const auto value = group.found.find(name);
        if (value == group.found.end() || value->second.count() == 0) continue;
        gives = gives || is_shown(name);
        if (linked.alone.count(name) != 0) known[name] = reused;
      }
      if (!gives) continue;
      for (const WorkpackageView* one : above.members) record.add_disturbance(one->disturbance);
      record.reused = record.reused || reused;
    }
  }

  // A value of an earlier step brings along what is to be said of the workpackages that printed it.
  void take_marks_of_ancestors(const Group& group, Record& record) const {
    const std::vector<const Group*> ancestors = groups_.ancestors(group);
    std::map<std::string, bool> known;  // patterns with a value; whether it is reused
    const bool own = record.reused;
    if (!ancestors.empty() || own || !linked_.empty()) {
      for (const auto& [name, statistics] : group.found) {
        if (statistics.count() > 0 || (own && by_name_.at(name)->default_value))
          known.emplace(name, own);
      }
    }
    for (const Group* above : ancestors) {
      const bool reused = is_reused(*above);
      bool gives = false;
      for (const auto& [name, statistics] : above->found) {
        if (statistics.count() == 0 || printed_.count({record.step, name}) != 0) continue;
        gives = (known.emplace(name, reused).second && is_shown(name)) || gives;
      }
      if (!gives) continue;
      for (const WorkpackageView* member : above->members)
        record.add_disturbance(member->disturbance);
      record.reused = record.reused || reused;
    }
    take_marks_of_linked(group, known, record);
    note_reused(known, own, record);
    record.busy = std::min(record.busy, record.all_repeats);
    record.throttled = std::min(record.throttled, record.all_repeats);
  }

  const Benchmark& benchmark_;
  const Analyser& analyser_;
  Evaluator& evaluator_;
  Diagnostics& diagnostics_;
  Wanted wanted_;
  ParameterValues parameters_;
  Groups groups_;
  std::vector<const Pattern*> patterns_, derived_;
  std::map<std::string, const Pattern*> by_name_;
  std::map<std::string, std::set<std::string>> bases_;              // find_bases()
  std::set<std::pair<std::string, std::string>> printed_;           // find_printed(): step, pattern
  std::map<std::string, std::vector<StoredStatistic>> statistics_;  // stored, by pattern
  std::map<const Analyse*, std::vector<const Pattern*>> patterns_of_step_;
  LinkedFiles linked_;
};

}  // namespace

Records analyse(const Benchmark& benchmark, const Analyser& analyser,
                const std::vector<WorkpackageView>& workpackages, Evaluator& evaluator,
                Diagnostics& diagnostics, std::vector<WorkpackageResult>* each,
                const std::set<std::string>& more_values, std::vector<Sample>* samples) {
  return Analysis(benchmark, analyser, workpackages, more_values, evaluator, diagnostics)
      .run(each, samples);
}

}  // namespace tally
