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

// Marks the outputs that show one of the names, which are of workpackages that ended in this way.
void add_state(State state, std::set<std::string> names, Record& record) {
  if (state == State::done || names.empty()) return;
  MarksOfEarlier marks;
  marks.state = state;
  marks.names = std::move(names);
  record.earlier.edit().push_back(std::move(marks));
}

// The state of the workpackages whose values are shown: done if one of them is a measurement.
State state_of(const std::vector<const WorkpackageView*>& members) {
  State state = members.front()->state;
  for (const WorkpackageView* member : members) state = nearest_to_done(state, member->state);
  return state;
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

// The patterns that rows of `step` have from outputs of the step `above`, and those computed from
// them. A file that is gone was not even searched: all that are sought there. `is_known`: of those
// that have a value from elsewhere.
template <typename IsKnown>
std::set<std::string> ValueSources::sought_in(const std::string& above, const std::string& step,
                                              const IsKnown& is_known) const {
  std::set<std::string> names;
  for (const Pattern* pattern : patterns_.of(groups_.find(above))) {
    const std::string& name = pattern->name.value;
    if (pattern->mode == PatternMode::pattern && !prints(step, name) && !is_known(name))
      patterns_.add_with_computed(name, &names);
  }
  return names;
}

ValueSources::Sources ValueSources::sources_of(const WorkpackageView& member, const Found& own,
                                               const std::vector<Groups::Above>& above,
                                               Record& row) const {
  Sources out;
  std::map<std::string, std::set<int>>& from = out.from;
  std::set<std::string> known;  // patterns that have a value of their own
  for (const auto& [name, statistics] : own) {
    if (statistics.count() > 0) known.insert(name);
  }
  add_linked_sources(member, known, out, row);
  for (const Groups::Above& one : above) {
    if (!groups_.counts(*one.workpackage)) {
      out.unmeasured.merge(
          sought_in(one.workpackage->step, member.step, [&](const std::string& name) {
            return known.count(name) != 0 || from.count(name) != 0;
          }));
    }
    for (const auto& [name, statistics] : one.in_files->found) {
      if (statistics.count() == 0 || known.count(name) != 0 || from.count(name) != 0) continue;
      if (prints(member.step, name)) continue;
      const int source = one.workpackage->done_by();
      for (const StoredStatistic& stored : patterns_.statistics(name)) from[stored.name] = {source};
      from[name] = {source};
      row.repeats_above.edit().try_emplace(source, groups_.planned_repeats(*one.workpackage).count);
    }
  }
  if (from.empty()) return out;
  for (const Pattern* pattern : patterns_.derived()) {
    std::set<int> sources;
    if (!is_own(*pattern, known, from, &sources)) from[pattern->name.value] = sources;
  }
  return out;
}

// Values that were read through a link are those of the workpackages that it leads to.
void ValueSources::add_linked_sources(const WorkpackageView& member, std::set<std::string>& known,
                                      Sources& sources, Record& row) const {
  std::map<std::string, std::set<int>>& from = sources.from;
  const std::vector<LinkedFile>& files = linked_.of(groups_.find(member.step));
  if (files.empty()) return;
  for (const WorkpackageView* above : groups_.ancestors(member)) {
    for (const LinkedFile& linked : files) {
      if (linked.steps.count(above->step) == 0) continue;
      // Also where a file of its own may give them: take_marks_of_linked() marks these, too.
      for (const std::string& name : linked.patterns) {
        if (!groups_.counts(*above) && known.count(name) != 0)
          patterns_.add_with_computed(name, &sources.unmeasured);
      }
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
    std::set<std::string> given, sought;
    for (const std::string& name : linked.patterns) {
      const auto value = group.all.found.find(name);
      const bool found = value != group.all.found.end() && value->second.count() != 0;
      if (found || linked.alone.count(name) != 0) patterns_.add_with_computed(name, &sought);
      if (!found) continue;
      patterns_.add_with_computed(name, &given);
      if (linked.alone.count(name) != 0) origins[name] = reused;
    }
    if (!above.members.empty()) add_state(state_of(above.members), std::move(sought), record);
    add_marks(above.members, reused, std::move(given), record);
  }
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
    const auto is_known = [&](const std::string& name) { return origins.count(name) != 0; };
    add_state(state_of(above->members),
              sought_in(above->members.front()->step, *record.step, is_known), record);
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
