#include "engine/results/rows/value_sources.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"
#include "engine/results/read/scan.h"
#include "engine/workflow/builtin_names.h"
#include "engine/workflow/pattern_uses.h"
#include "engine/workflow/table_names.h"

namespace tally {

bool shares_work(const Group& group, const WorkpackageView& member) {
  return member.worker >= 0 && std::ranges::any_of(group.members, [&](const WorkpackageView* one) {
           return one->id == member.worker;
         });
}

bool is_reused(const Group& group) {
  return std::ranges::any_of(group.members, [&](const WorkpackageView* member) {
    return member->reused && !shares_work(group, *member);
  });
}

namespace {

// Whether its values are those of outputs that changed after the end of their workpackages.
bool is_changed(const Group& group) {
  const auto has = [&](State state) {
    return std::ranges::any_of(group.members,
                               [&](const WorkpackageView* one) { return one->state == state; });
  };
  return has(State::changed) && !has(State::done);
}

}  // namespace

ValueSources::ValueSources(const Benchmark& benchmark, const Analyser& analyser,
                           const AnalysedPatterns& patterns, const Groups& groups)
    : benchmark_(benchmark), patterns_(patterns), groups_(groups), linked_(benchmark, analyser) {
  if (!benchmark.rules.rows_are_marked) return;
  for (const Group& group : groups.all()) {
    for (const auto& [name, statistics] : group.all.found) {
      if (statistics.count() > 0) printed_.insert({group.members.front()->step, name});
    }
  }
}

std::map<std::string, std::set<int>> ValueSources::sources_of(
    const WorkpackageView& member, const Found& own, const std::vector<Groups::Above>& above,
    Record& row) const {
  std::map<std::string, std::set<int>> from;
  std::set<std::string> known;  // patterns that have a value of their own
  for (const auto& [name, statistics] : own) {
    if (statistics.count() > 0) known.insert(name);
  }
  add_linked_sources(member, known, from, row);
  for (const Groups::Above& one : above) {
    for (const auto& [name, statistics] : one.in_files->found) {
      if (statistics.count() == 0 || known.count(name) != 0 || from.count(name) != 0) continue;
      if (prints(member.step, name)) continue;
      const int source = one.workpackage->done_by();
      for (const StoredStatistic& stored : patterns_.statistics(name)) from[stored.name] = {source};
      from[name] = {source};
      row.repeats_above.edit().try_emplace(source, groups_.planned_repeats(*one.workpackage).count);
    }
  }
  if (from.empty()) return from;
  for (const Pattern* pattern : patterns_.derived()) {
    std::set<int> sources;
    if (!is_own(*pattern, known, from, &sources)) from[pattern->name.value] = sources;
  }
  return from;
}

// Values that were read through a link are those of the workpackages that it leads to.
void ValueSources::add_linked_sources(const WorkpackageView& member, std::set<std::string>& known,
                                      std::map<std::string, std::set<int>>& from,
                                      Record& row) const {
  const std::vector<LinkedFile>& files = linked_.of(groups_.find(member.step));
  if (files.empty()) return;
  for (const WorkpackageView* above : groups_.ancestors(member)) {
    for (const LinkedFile& linked : files) {
      if (linked.steps.count(above->step) == 0) continue;
      for (const std::string& name : linked.alone) {
        if (known.count(name) == 0 && from.count(name) == 0) continue;
        known.erase(name);
        for (const StoredStatistic& stored : patterns_.statistics(name))
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
bool ValueSources::is_own(const Pattern& pattern, const std::set<std::string>& known,
                          const std::map<std::string, std::set<int>>& from,
                          std::set<int>* sources) const {
  for (const std::string& name : patterns_.bases(pattern)) {
    const auto source = from.find(name);
    if (source != from.end()) sources->insert(source->second.begin(), source->second.end());
    const bool found = patterns_.has(name) || known.count(name) != 0;
    const bool varies = is_workpackage_name(name) || groups_.varies(name);
    if (source == from.end() && (found || varies)) return true;
  }
  return sources->empty();
}

// A computed value is reused if all that it is computed from is.
void ValueSources::note_reused(const Origins& origins, bool own, Record& record) const {
  std::set<std::string> names;
  for (const auto& [name, reused] : origins) {
    if (reused) names.insert(name);
  }
  if (names.empty()) return;
  for (const Pattern* pattern : patterns_.derived()) {
    bool measured = false;
    bool reused = own;
    for (const std::string& base : patterns_.bases(*pattern)) {
      const auto origin = origins.find(pattern_of(benchmark_, base));
      if (origin == origins.end()) continue;
      (origin->second ? reused : measured) = true;
    }
    if (reused && !measured) names.insert(pattern->name.value);
  }
  record.reused_values.set(std::move(names));
}

// `names`: the values that the row has from these workpackages.
void ValueSources::add_marks(const std::vector<const WorkpackageView*>& members, bool reused,
                             std::set<std::string> names, Record& record) const {
  MarksOfEarlier marks;
  marks.reused = reused;
  for (const WorkpackageView* member : members) {
    if (member->disturbance.any()) marks.disturbances.push_back(member->disturbance);
  }
  if (names.empty() || (!reused && marks.disturbances.empty())) return;
  marks.names = std::move(names);
  record.earlier.edit().push_back(std::move(marks));
}

// The same as of ancestors for a value that was read in the folder of the row's step and that
// another one wrote.
void ValueSources::take_marks_of_linked(const Group& group, Origins& origins,
                                        Record& record) const {
  const std::vector<LinkedFile>& files = linked_.of(groups_.find(*record.step));
  if (files.empty()) return;
  const std::vector<const WorkpackageView*> all = groups_.ancestors(group.members);
  for (const LinkedFile& linked : files) {
    Group above;
    for (const WorkpackageView* one : all) {
      if (linked.steps.count(one->step) != 0) above.members.push_back(one);
    }
    const bool reused = is_reused(above);
    std::set<std::string> given;
    for (const std::string& name : linked.patterns) {
      const auto value = group.all.found.find(name);
      if (value == group.all.found.end() || value->second.count() == 0) continue;
      patterns_.add_with_computed(name, &given);
      if (linked.alone.count(name) != 0) origins[name] = reused;
    }
    add_marks(above.members, reused, std::move(given), record);
  }
}

// A file that is gone was not even searched: all patterns that are sought in the outputs of this
// earlier step.
void ValueSources::add_change(const Group& above, Record& record) const {
  MarksOfEarlier marks;
  marks.changed = true;
  for (const Pattern* pattern : patterns_.of(groups_.find(above.members.front()->step))) {
    const std::string& name = pattern->name.value;
    if (pattern->mode == PatternMode::pattern && !prints(*record.step, name))
      patterns_.add_with_computed(name, &marks.names);
  }
  if (!marks.names.empty()) record.earlier.edit().push_back(std::move(marks));
}

void ValueSources::take_marks_of_ancestors(const Group& group, Record& record) const {
  const std::vector<const Group*> ancestors = groups_.ancestors(group);
  Origins origins;
  const bool own = record.reused;
  if (!ancestors.empty() || own || !linked_.empty()) {
    for (const auto& [name, statistics] : group.all.found) {
      if (statistics.count() > 0 || (own && patterns_.by_name().at(name)->default_value))
        origins.emplace(name, own);
    }
  }
  for (const Group* above : ancestors) {
    const bool reused = is_reused(*above);
    std::set<std::string> given;
    if (is_changed(*above)) add_change(*above, record);
    for (const auto& [name, statistics] : above->all.found) {
      if (statistics.count() == 0 || prints(*record.step, name)) continue;
      if (origins.emplace(name, reused).second) patterns_.add_with_computed(name, &given);
    }
    add_marks(above->members, reused, std::move(given), record);
  }
  take_marks_of_linked(group, origins, record);
  note_reused(origins, own, record);
}

LinkedFiles::LinkedFiles(const Benchmark& benchmark, const Analyser& analyser) {
  if (!benchmark.rules.rows_are_marked) return;
  for (const Analyse& analyse : analyser.analyse) {
    std::vector<LinkedFile> linked;
    std::set<std::string> elsewhere;  // patterns that files of the step itself are searched for
    for (const AnalyseFile& file : analyse.files) {
      LinkedFile one{steps_read(benchmark, analyse, file), {}, {}};
      std::set<std::string>& names = one.steps.empty() ? elsewhere : one.patterns;
      for (const Pattern* pattern : patterns_for(benchmark, analyser, file))
        names.insert(pattern->name.value);
      if (!one.steps.empty()) linked.push_back(std::move(one));
    }
    for (LinkedFile& one : linked) {
      for (const std::string& name : one.patterns) {
        if (elsewhere.count(name) == 0) one.alone.insert(name);
      }
    }
    if (!linked.empty()) files_[&analyse] = std::move(linked);
  }
}

const std::vector<LinkedFile>& LinkedFiles::of(const Analyse* analyse) const {
  static const std::vector<LinkedFile> none;
  const auto found = files_.find(analyse);
  return found == files_.end() ? none : found->second;
}

}  // namespace tally
