#include "engine/results/analyse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <unordered_map>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/results/derived.h"
#include "engine/results/families.h"
#include "engine/results/missing_rows.h"
#include "engine/results/precision.h"
#include "engine/results/scan.h"
#include "engine/results/wanted.h"

namespace tally {
namespace {

// Workpackages that share a result line: one, or with `reduce` all that differ only in their
// iteration.
struct Group {
  std::vector<const WorkpackageView*> members;  // by id
  Found found;
  bool leaf = true;
  std::vector<Found> own;  // of each member; empty unless statistics of repeats are wanted
};

class Analysis {
 public:
  Analysis(const Benchmark& benchmark, const Analyser& analyser,
           const std::vector<WorkpackageView>& workpackages,
           const std::set<std::string>& more_values, Evaluator& evaluator, Diagnostics& diagnostics)
      : benchmark_(benchmark),
        analyser_(analyser),
        evaluator_(evaluator),
        diagnostics_(diagnostics),
        wanted_(benchmark, more_values) {
    for (const WorkpackageView& workpackage : workpackages) by_id_[workpackage.id] = &workpackage;
    own_ = parameters_of_workpackages(benchmark);
    find_warmups();
  }

  Records run(std::vector<WorkpackageResult>* each) {
    if (lacks_something() || clashes()) return {};
    make_groups();
    Scanner scanner(benchmark_, analyser_, diagnostics_);
    for (Group& group : groups_) {
      const Analyse* analyse = find(group.members.front()->step);
      const bool some_count = any_counts(group);
      if (wanted_.repeats()) group.own.resize(group.members.size());
      for (size_t i = 0; i < group.members.size(); ++i) {
        if (some_count && !counts(*group.members[i])) continue;
        std::vector<Found*> found = {&group.found};
        if (wanted_.repeats()) found.push_back(&group.own[i]);
        scanner.scan(*analyse, *group.members[i], found);
      }
    }
    scanner.report();
    if (each != nullptr) *each = workpackage_results();
    Records records = make_records();
    records.unmatched = scanner.unmatched();
    return records;
  }

 private:
  bool counts(const WorkpackageView& workpackage) const {
    return tally::counts(benchmark_, workpackage);
  }
  bool any_counts(const Group& group) const {
    return std::any_of(group.members.begin(), group.members.end(),
                       [&](const WorkpackageView* member) { return counts(*member); });
  }

  // In JUBE mode, everything that was started counts as successful.
  bool any_ended_well(const Group& group) const {
    return benchmark_.as_jube ||
           std::any_of(group.members.begin(), group.members.end(),
                       [](const WorkpackageView* member) { return member->state == State::done; });
  }

  const Analyse* find(const std::string& step) const {
    for (const Analyse& analyse : analyser_.analyse) {
      if (analyse.step.value == step) return &analyse;
    }
    return nullptr;
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

  std::vector<const Pattern*> all_patterns() const {
    std::vector<Text> use = analyser_.use;
    for (const Analyse& analyse : analyser_.analyse) {
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

  std::vector<const Pattern*> patterns_of_step(const Analyse& analyse) const {
    std::vector<Text> use = analyser_.use;
    for (const AnalyseFile& file : analyse.files) {
      use.insert(use.end(), file.use.begin(), file.use.end());
    }
    return patterns_of(benchmark_, use);
  }

  // Reports a column name that would have two meanings.
  bool clashes() {
    bool found = false;
    for (const Pattern* pattern : all_patterns()) {
      const std::string& name = pattern->name.value;
      for (const auto& [id, workpackage] : by_id_) {
        if (find(workpackage->step) == nullptr) continue;
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

  // Warm-ups, and what depends on them.
  void find_warmups() {
    for (const auto& [id, workpackage] : by_id_) {  // parents have lower ids
      const auto& parents = workpackage->parents;
      if (is_warmup(benchmark_, *workpackage) ||
          std::any_of(parents.begin(), parents.end(),
                      [&](int parent) { return warmups_.count(parent) != 0; }))
        warmups_.insert(id);
    }
  }

  // In Tally's own files, iterations of a parent are reduced whatever follows from their number.
  std::string own_values(const WorkpackageView& workpackage) const {
    std::string text;
    for (const auto& [name, value] : workpackage.values) {
      if (!benchmark_.as_jube || own_.count(name) == 0) continue;
      text += name + '=' + value + '\0';
    }
    return text;
  }

  void make_groups() {
    std::map<int, size_t> families;
    if (analyser_.reduce) {
      families = find_families(
          by_id_, [&](const WorkpackageView& p) { return point_key(p, own_); },
          [&](const WorkpackageView& p) { return own_values(p); });
    }
    std::map<size_t, size_t> of_family;
    for (const auto& [id, workpackage] : by_id_) {
      if (!workpackage->finished || find(workpackage->step) == nullptr) continue;
      if (warmups_.count(id) != 0) continue;
      if (analyser_.reduce) {
        const auto [entry, is_new] = of_family.try_emplace(families.at(id), groups_.size());
        if (!is_new) {
          groups_[entry->second].members.push_back(workpackage);
          group_of_[id] = entry->second;
          continue;
        }
      }
      group_of_[id] = groups_.size();
      groups_.push_back({{workpackage}, {}, true, {}});
    }
    for (const Group& group : groups_) {
      for (size_t ancestor : ancestors(group)) groups_[ancestor].leaf = false;
    }
  }

  // The groups of the analysed workpackages that this group's members depend on, nearest first.
  std::vector<size_t> ancestors(const Group& group) const {
    std::vector<size_t> result;
    for (const WorkpackageView* workpackage : ancestor_workpackages(group)) {
      auto found = group_of_.find(workpackage->id);
      if (found == group_of_.end()) continue;
      if (std::find(result.begin(), result.end(), found->second) == result.end()) {
        result.push_back(found->second);
      }
    }
    return result;
  }

  std::vector<const WorkpackageView*> ancestor_workpackages(const Group& group) const {
    std::vector<const WorkpackageView*> queue = group.members;
    std::set<int> seen;
    for (size_t i = 0; i < queue.size(); ++i) {
      for (int parent : queue[i]->parents) {
        auto found = by_id_.find(parent);
        if (found != by_id_.end() && seen.insert(parent).second) queue.push_back(found->second);
      }
    }
    queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(group.members.size()));
    return queue;
  }

  void add_found(const Found& found, const std::map<std::string, const Pattern*>& patterns,
                 std::map<std::string, Value>& values) const {
    for (const auto& [name, statistics] : found) {
      if (statistics.count() == 0) continue;
      if (values.count(name) != 0 && patterns.count(name) != 0) continue;  // the child's own value
      statistics.store(name, values);
    }
  }

  // The values from each group's own files, in the order of steps and ids.
  std::vector<WorkpackageResult> workpackage_results() {
    std::vector<WorkpackageResult> results;
    Diagnostics said_elsewhere;
    for (const Analyse& analyse : analyser_.analyse) {
      const std::vector<const Pattern*> patterns = patterns_of_step(analyse);
      std::vector<const Pattern*> derived;
      std::vector<Line> lines;
      std::vector<const WorkpackageView*> workpackages;
      for (const Pattern* pattern : patterns) {
        if (pattern->mode != PatternMode::pattern) derived.push_back(pattern);
      }
      for (const Group& group : groups_) {
        if (group.members.front()->step != analyse.step.value) continue;
        Line& line = lines.emplace_back();
        line.parameters = &group.members.front()->values;
        add_found(group.found, {}, line.values);
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
    std::vector<const Pattern*> patterns = all_patterns();
    std::map<std::string, const Pattern*> by_name;
    std::vector<const Pattern*> derived;
    for (const Pattern* pattern : patterns) {
      by_name[pattern->name.value] = pattern;
      if (pattern->mode != PatternMode::pattern) derived.push_back(pattern);
    }
    std::vector<const Group*> leaves;
    std::vector<Line> lines;
    for (const Group& group : groups_) {
      if (!group.leaf) continue;
      std::vector<const Found*> above;
      for (size_t ancestor : ancestors(group)) above.push_back(&groups_[ancestor].found);
      lines.push_back(make_line(group, *group.members.front(), group.found, above, by_name));
      lines.back().failed = !any_ended_well(group);
      leaves.push_back(&group);
    }
    derive(derived, lines, evaluator_, !benchmark_.as_jube, diagnostics_);
    Records records;
    for (size_t i = 0; i < lines.size(); ++i) {
      records.rows.push_back(make_record(*leaves[i], std::move(lines[i].values), records));
    }
    if (wanted_.repeats()) add_repeats(leaves, by_name, derived, records);
    for (const Pattern* pattern : patterns) describe(*pattern, benchmark_.as_jube, records);
    note_missing_rows(benchmark_, analyser_, by_id_, records);
    return records;
  }

  // The line of a group, or of one of its members. `own`: what its files hold; `above`: those of
  // the workpackages it depends on, nearest first.
  Line make_line(const Group& group, const WorkpackageView& shown, const Found& own,
                 const std::vector<const Found*>& above,
                 const std::map<std::string, const Pattern*>& patterns) {
    Line line;
    line.parameters = &shown.values;
    add_found(own, patterns, line.values);
    // JUBE sets a pattern's default for every file that is scanned for it. Therefore the default
    // of the last step wins even if a parent's file had a match. A pattern whose files are all
    // missing has no value.
    for (const Pattern* pattern : patterns_of_step(*find(shown.step))) {
      if (was_sought(*pattern, group)) add_default(*pattern, line.values);
    }
    for (const Found* found : above) add_found(*found, patterns, line.values);
    for (const auto& [name, pattern] : patterns) {
      if (was_sought(*pattern, group)) add_default(*pattern, line.values);
    }
    return line;
  }

  // What the files of the workpackages that `workpackage` depends on hold, nearest first.
  std::vector<const Found*> found_above(const WorkpackageView& workpackage) const {
    std::vector<const Found*> above;
    for (const WorkpackageView* parent : ancestor_workpackages({{&workpackage}, {}, true, {}})) {
      const auto at = group_of_.find(parent->id);
      if (at == group_of_.end()) continue;
      const Group& group = groups_[at->second];
      const auto member = std::find(group.members.begin(), group.members.end(), parent);
      above.push_back(&group.own[static_cast<size_t>(member - group.members.begin())]);
    }
    return above;
  }

  // Adds to each row the values of the workpackages that it is made of, those that count.
  void add_repeats(const std::vector<const Group*>& leaves,
                   const std::map<std::string, const Pattern*>& patterns,
                   const std::vector<const Pattern*>& derived, Records& records) {
    std::vector<Line> lines;
    std::vector<std::pair<size_t, const WorkpackageView*>> places;  // row, workpackage
    for (size_t row = 0; row < leaves.size(); ++row) {
      const Group& group = *leaves[row];
      std::vector<size_t> order;
      for (size_t i = 0; i < group.members.size(); ++i) {
        if (counts(*group.members[i])) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return group.members[a]->iteration < group.members[b]->iteration;
      });
      for (const size_t i : order) {
        const WorkpackageView& member = *group.members[i];
        lines.push_back(make_line(group, member, group.own[i], found_above(member), patterns));
        places.emplace_back(row, &member);
      }
    }
    Diagnostics said_of_the_rows;
    derive(derived, lines, evaluator_, !benchmark_.as_jube, said_of_the_rows);
    for (size_t i = 0; i < lines.size(); ++i) {
      records.rows[places[i].first].repeats.push_back(
          all_values(*places[i].second, std::move(lines[i].values), records));
    }
  }

  static int run_of(const WorkpackageView& workpackage) {
    for (const auto& [name, value] : workpackage.values) {
      if (name == "jube_benchmark_id") return std::atoi(value.c_str());
    }
    return 0;
  }

  // Whether a file of the group, or of the groups it depends on, was scanned for the pattern.
  bool was_sought(const Pattern& pattern, const Group& group) const {
    if (group.found.count(pattern.name.value) != 0) return true;
    for (size_t ancestor : ancestors(group)) {
      if (groups_[ancestor].found.count(pattern.name.value) != 0) return true;
    }
    return false;
  }

  void add_default(const Pattern& pattern, std::map<std::string, Value>& values) {
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
    records.types[name] = pattern.type;
    if (pattern.unit.empty()) return;
    for (const char* suffix : {"", "_first", "_last", "_min", "_max", "_avg", "_sum", "_std"}) {
      records.units[name + suffix] = pattern.unit;
    }
    if (as_jube) return;
    for (const char* suffix : {"_median", "_mad", "_p05", "_p95", "_ci_low", "_ci_high"})
      records.units.try_emplace(name + suffix, pattern.unit);
  }

  // The wanted ones of `values` and of the workpackage's own and its parents' parameters.
  std::map<std::string, Value> all_values(const WorkpackageView& shown,
                                          std::map<std::string, Value>&& values,
                                          Records& records) const {
    std::map<std::string, Value> kept;
    auto put = [&](const std::string& name, const Value& value) {
      if (wanted_.has(name)) kept.try_emplace(name, value);
    };
    for (auto& [name, value] : values) {
      if (wanted_.has(name)) kept.insert_or_assign(name, std::move(value));
    }
    add_workpackage(shown, true, put, records);
    for (const WorkpackageView* workpackage : ancestor_workpackages({{&shown}, {}, true, {}})) {
      add_workpackage(*workpackage, false, put, records);
    }
    put("jube_res_analyser", {analyser_.name.value});
    return kept;
  }

  Record make_record(const Group& group, std::map<std::string, Value>&& values, Records& records) {
    Record record;
    const WorkpackageView& shown = *group.members.front();
    record.values = all_values(shown, std::move(values), records);
    const bool some_count = any_counts(group);
    for (const auto& [name, statistics] : group.found) {
      if (statistics.count() == 0) record.unmatched.push_back(name);
    }
    record.id = shown.id;
    record.run = run_of(shown);
    record.all_repeats = static_cast<int>(group.members.size());
    record.state = shown.state;
    record.reused = shown.reused;
    for (const WorkpackageView* member : group.members) {
      const bool left_out = some_count && !counts(*member);
      for (const std::string& note : member->notes)
        record.notes.push_back(left_out ? note + "; it is left out of the row" : note);
      if (!left_out && (record.failed() || record.unfinished())) record.state = member->state;
      if (!left_out) record.add_disturbance(member->disturbance);
    }
    return record;
  }

  template <typename Put>
  void add_workpackage(const WorkpackageView& workpackage, bool own, const Put& put,
                       Records& records) const {
    for (const auto& [name, text] : workpackage.values) {
      std::string with_step = name + "_" + workpackage.step;
      bool plain = own && wanted_.has(name);
      bool stepped = wanted_.has(with_step);
      if (!plain && !stepped) continue;
      std::optional<Value> value =
          make_value(text, type_of(workpackage, name), !benchmark_.as_jube);
      if (!value) value = Value{text};
      if (plain) put(name, *value);
      if (stepped) put(with_step, *value);
    }
    if (!records.units.empty() || !workpackage.units.empty()) {
      for (const auto& [name, unit] : workpackage.units) {
        if (unit.empty()) continue;
        records.units.try_emplace(name, unit);
        records.units.try_emplace(name + "_" + workpackage.step, unit);
      }
    }
    for (const auto& [name, type] : workpackage.types) records.types.try_emplace(name, type);
  }

  static ValueType type_of(const WorkpackageView& workpackage, const std::string& name) {
    for (const auto& [typed, type] : workpackage.types) {
      if (typed == name) return type;
    }
    static const std::set<std::string> whole = {"jube_benchmark_id", "jube_step_iterations",
                                                "jube_step_cycles",  "jube_wp_id",
                                                "jube_wp_iteration", "jube_wp_cycle"};
    bool parent = starts_with(name, "jube_wp_parent_") && name.size() > 3 &&
                  name.compare(name.size() - 3, 3, "_id") == 0;
    return parent || whole.count(name) != 0 ? ValueType::integer : ValueType::string;
  }

  const Benchmark& benchmark_;
  const Analyser& analyser_;
  Evaluator& evaluator_;
  Diagnostics& diagnostics_;
  Wanted wanted_;
  std::map<int, const WorkpackageView*> by_id_;
  std::set<std::string> own_;  // parameters that may differ between iterations
  std::set<int> warmups_;      // ids
  std::vector<Group> groups_;
  std::unordered_map<int, size_t> group_of_;
};

}  // namespace

Records analyse(const Benchmark& benchmark, const Analyser& analyser,
                const std::vector<WorkpackageView>& workpackages, Evaluator& evaluator,
                Diagnostics& diagnostics, std::vector<WorkpackageResult>* each,
                const std::set<std::string>& more_values) {
  return Analysis(benchmark, analyser, workpackages, more_values, evaluator, diagnostics).run(each);
}

}  // namespace tally
