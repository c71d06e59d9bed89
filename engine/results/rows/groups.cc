#include "engine/results/rows/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <future>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "engine/base/in_thread.h"
#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/pattern_uses.h"

namespace tally {
namespace {

class Families {
 public:
  explicit Families(const std::function<std::string(const WorkpackageView&)>& point_key)
      : point_key_(point_key) {}

  // Adds a workpackage. Its parents' families must be complete.
  void add(const WorkpackageView& workpackage) {
    std::vector<size_t>& same = of_key_[key(workpackage)];
    const auto free = std::ranges::find_if(same, [&](size_t at) {
      return std::ranges::none_of(members_[at], [&](const WorkpackageView* other) {
        return is_repeated(workpackage, *other);
      });
    });
    const size_t at = free != same.end() ? *free : members_.size();
    if (free == same.end()) {
      same.push_back(at);
      members_.emplace_back();
    }
    members_[at].push_back(&workpackage);
    family_of_[workpackage.id] = at;
  }

  std::unordered_map<int, size_t> take() { return std::move(family_of_); }

 private:
  std::string key(const WorkpackageView& workpackage) const {
    const auto alone = [&](int parent) {
      const auto family = family_of_.find(parent);
      return family == family_of_.end() || members_[family->second].size() == 1;
    };
    const bool apart =
        workpackage.parents.size() > 1 && std::ranges::any_of(workpackage.parents, alone);
    std::string key = point_key_(workpackage);
    for (const int parent : workpackage.parents) {
      const auto family = family_of_.find(parent);
      key += '\0';
      key += apart || family == family_of_.end() ? "#" + std::to_string(parent)
                                                 : std::to_string(family->second);
    }
    return key;
  }

  // Whether the same iteration occurs twice. Then a parameter has the same value twice, and this is
  // not an iteration.
  static bool is_repeated(const WorkpackageView& a, const WorkpackageView& b) {
    return a.iteration == b.iteration && (a.parents.size() < 2 || a.parents == b.parents);
  }

  const std::function<std::string(const WorkpackageView&)>& point_key_;
  std::unordered_map<std::string, std::vector<size_t>> of_key_;
  std::vector<std::vector<const WorkpackageView*>> members_;  // of each family
  std::unordered_map<int, size_t> family_of_;
};

}  // namespace

std::unordered_map<int, size_t> find_families(
    const WorkpackagesById& workpackages,
    const std::function<std::string(const WorkpackageView&)>& point_key,
    const std::function<std::string(const WorkpackageView&)>& own_values) {
  std::unordered_map<int, int> depth;
  std::map<int, std::vector<const WorkpackageView*>> by_depth;
  for (const WorkpackageView* workpackage : workpackages) {  // parents have lower ids
    int own = 0;
    for (const int parent : workpackage->parents) {
      const auto above = depth.find(parent);  // none: the first ones, of depth 0
      own = std::max(own, above == depth.end() ? 1 : above->second + 1);
    }
    if (own != 0) depth[workpackage->id] = own;
    by_depth[own].push_back(workpackage);
  }
  const bool plain =
      std::ranges::all_of(workpackages, [&](const auto* one) { return own_values(*one).empty(); });
  // Iterations of one workpackage may differ in `own_values`. Iterations of its parents belong to
  // one family only if these values are equal too.
  // The values of the iterations of one workpackage.
  std::map<std::string, std::multiset<std::string>> values_of;
  const auto iterations_of = [](const std::string& point, const WorkpackageView& workpackage) {
    return fmt::format("{}\1{}", point, fmt::join(workpackage.parents, ","));
  };
  for (auto at = workpackages.begin(); !plain && at != workpackages.end(); ++at) {
    const WorkpackageView& workpackage = **at;
    values_of[iterations_of(point_key(workpackage), workpackage)].insert(own_values(workpackage));
  }
  const std::function<std::string(const WorkpackageView&)> full_key =
      [&](const WorkpackageView& workpackage) {
        const std::string point = point_key(workpackage);
        return fmt::format("{}\1{}", point,
                           fmt::join(values_of[iterations_of(point, workpackage)], "\1"));
      };
  Families families(plain ? point_key : full_key);
  for (const auto& [at, list] : by_depth) {
    for (const WorkpackageView* workpackage : list) families.add(*workpackage);
  }
  return families.take();
}

namespace {

// How many repeats of the step each of its points has, without warm-ups.
int repeats_of(const Benchmark& benchmark, const std::string& name) {
  const Step* step = benchmark.find_step(name);
  if (step == nullptr) return 1;
  return std::max(1, std::atoi(step->repeat.value.c_str()) - step->until.warmup);
}

}  // namespace

bool is_warmup(const Benchmark& benchmark, const WorkpackageView& workpackage) {
  const Step* step = benchmark.find_step(workpackage.step);
  if (step == nullptr || step->until.warmup == 0) return false;
  const int copies = std::atoi(step->repeat.value.c_str());  // check/ has made it a plain number
  return copies > 0 && workpackage.iteration % copies < step->until.warmup;
}

State nearest_to_done(State a, State b) {
  const auto rank = [](State state) {
    constexpr std::array kOrder = {State::done,    State::changed,  State::running, State::waiting,
                                   State::pending, State::expected, State::failed,  State::lost};
    return std::find(kOrder.begin(), kOrder.end(), state) - kOrder.begin();
  };
  return rank(b) < rank(a) ? b : a;
}

Groups::Groups(const Benchmark& benchmark, const Analyser& analyser,
               const std::vector<WorkpackageView>& workpackages)
    : benchmark_(benchmark),
      analyser_(analyser),
      by_id_(tally::by_id(workpackages)),
      points_(std::make_shared<const Points>(workpackages, benchmark.rules.fractions_are_kept)),
      own_(varying_parameters(benchmark)) {}

bool Groups::counts(const WorkpackageView& workpackage) const {
  return !benchmark_.rules.only_done_counts || workpackage.state == State::done;
}

bool Groups::any_counts(const Group& group) const {
  return std::ranges::any_of(group.members,
                             [&](const WorkpackageView* member) { return counts(*member); });
}

bool Groups::any_ended_well(const Group& group) const {
  return !benchmark_.rules.only_done_counts ||
         std::ranges::any_of(group.members, [](const WorkpackageView* member) {
           return member->state == State::done;
         });
}

const Analyse* Groups::find(const std::string& step) const {
  for (const Analyse& analyse : analyser_.analyse) {
    if (analyse.step.value == step) return &analyse;
  }
  return nullptr;
}

void Groups::find_warmups() {
  for (const WorkpackageView* workpackage : by_id_) {  // parents have lower ids
    const auto& parents = workpackage->parents;
    if (is_warmup(benchmark_, *workpackage) ||
        std::ranges::any_of(parents, [&](int parent) { return warmups_.count(parent) != 0; }))
      warmups_.insert(workpackage->id);
  }
}

// The values that keep iterations of a parent apart, because they follow from their number.
std::string Groups::own_values(const WorkpackageView& workpackage) const {
  std::string text;
  if (benchmark_.rules.iterations_make_one_row) return text;
  for (const auto& [name, value] : workpackage.values) {
    if (own_.count(name) != 0) text += name + '=' + value + '\0';
  }
  return text;
}

// The family of each workpackage. Empty: each is a family of its own, because without several
// iterations, equal points are repeated values of a parameter.
std::unordered_map<int, size_t> Groups::find_families() const {
  const bool iterated = std::ranges::any_of(by_id_, [&](const WorkpackageView* workpackage) {
    return workpackage->iteration != by_id_.front()->iteration;
  });
  if (!analyser_.reduce || !iterated) return {};
  return tally::find_families(
      by_id_, [&](const WorkpackageView& p) { return key_of_repeats(points_, p, own_); },
      [&](const WorkpackageView& p) { return own_values(p); });
}

void Groups::find_members() {
  for (const WorkpackageView* workpackage : by_id_) {
    const auto family = families_.find(workpackage->id);
    if (family == families_.end() || warmups_.count(workpackage->id) != 0) continue;
    if (family->second >= members_.size()) members_.resize(family->second + 1);
    members_[family->second].push_back(workpackage);
    for (const int parent : workpackage->parents) has_children_.insert({parent, workpackage->step});
  }
}

// Adds the repeats that were not created, because those of the step before failed or go on.
void Groups::add_missing(const WorkpackageView& one, PlannedRepeats* repeats) const {
  if (one.parents.size() != 1) return;
  const WorkpackageView* parent = find_id(by_id_, one.parents.front());
  if (parent == nullptr) return;
  const WorkpackagesById& parents = members_[families_.at(parent->id)];
  const PlannedRepeats above = planned_repeats(*parent);
  int without = above.count - static_cast<int>(parents.size());
  for (const WorkpackageView* each : parents) {
    if (has_children_.count({each->id, one.step}) == 0) ++without;
  }
  repeats->count += without * repeats_of(benchmark_, one.step);
  if (without > 0 && above.open != State::done && repeats->open == State::done)
    repeats->open = State::pending;
}

PlannedRepeats Groups::planned_repeats(const WorkpackageView& workpackage) const {
  PlannedRepeats repeats;
  const auto family = families_.find(workpackage.id);
  if (!benchmark_.rules.rows_are_marked || family == families_.end() ||
      family->second >= members_.size()) {
    return repeats;
  }
  const WorkpackagesById& members = members_[family->second];
  repeats.count = static_cast<int>(members.size());
  for (const WorkpackageView* member : members) {
    if (repeats.first < 0) repeats.first = member->id;
    repeats.any_well = repeats.any_well || finished_well(member->state);
    if (has_ended(member->state)) continue;
    if (repeats.open == State::done || member->state == State::running)
      repeats.open = member->state;
  }
  add_missing(workpackage, &repeats);
  return repeats;
}

bool Groups::has_row(const WorkpackageView& workpackage) const {
  const Group* group = group_of(workpackage.id);
  return warmups_.count(workpackage.id) != 0 || (group != nullptr && group->leaf);
}

void Groups::make() {
  find_warmups();
  families_ = find_families();
  if (benchmark_.rules.rows_are_marked) find_members();
  std::unordered_map<size_t, size_t> of_family;
  group_of_.reserve(by_id_.size());
  if (families_.empty()) groups_.reserve(by_id_.size());
  for (const WorkpackageView* workpackage : by_id_) {
    const int id = workpackage->id;
    if (!workpackage->finished || find(workpackage->step) == nullptr) continue;
    if (warmups_.count(id) != 0) continue;
    size_t index = groups_.size();
    if (!families_.empty()) index = of_family.try_emplace(families_.at(id), index).first->second;
    if (index == groups_.size()) groups_.emplace_back();
    groups_[index].members.push_back(workpackage);
    group_of_.emplace_back(id, index);
  }
  for (const Group& group : groups_) {
    for (const Group* ancestor : ancestors(group))
      groups_[static_cast<size_t>(ancestor - groups_.data())].leaf = false;
  }
}

const Group* Groups::group_of(int id) const {
  const auto found =
      std::lower_bound(group_of_.begin(), group_of_.end(), id,
                       [](const auto& entry, int wanted) { return entry.first < wanted; });
  return found != group_of_.end() && found->first == id ? &groups_[found->second] : nullptr;
}

std::vector<const Group*> Groups::ancestors(const Group& group) const {
  std::vector<const Group*> result;
  for (const WorkpackageView* workpackage : ancestors(group.members)) {
    const Group* above = group_of(workpackage->id);
    if (above == nullptr) continue;
    if (!contains(result, above)) result.push_back(above);
  }
  return result;
}

std::vector<const WorkpackageView*> Groups::ancestors(
    const std::vector<const WorkpackageView*>& members) const {
  if (std::ranges::all_of(members,
                          [](const WorkpackageView* member) { return member->parents.empty(); }))
    return {};
  std::vector<const WorkpackageView*> queue = members;
  std::set<int> seen;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const int parent : queue[i]->parents) {
      const WorkpackageView* found = find_id(by_id_, parent);
      if (found != nullptr && seen.insert(parent).second) queue.push_back(found);
    }
  }
  queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(members.size()));
  return queue;
}

std::vector<const WorkpackageView*> Groups::ancestors(const WorkpackageView& workpackage) const {
  if (workpackage.parents.empty()) return {};
  return ancestors(std::vector<const WorkpackageView*>{&workpackage});
}

std::vector<Groups::Above> Groups::above(const WorkpackageView& workpackage) const {
  std::vector<Above> above;
  for (const WorkpackageView* parent : ancestors(workpackage)) {
    const Group* group = group_of(parent->id);
    if (group == nullptr) continue;
    const auto member = std::find(group->members.begin(), group->members.end(), parent);
    above.push_back(
        {parent, &group->of_member(static_cast<size_t>(member - group->members.begin()))});
  }
  return above;
}

namespace {

// A thread is worth it from some hundred small files on. Few threads: a login node belongs to all.
constexpr size_t kLeast = 500;
constexpr size_t kMostThreads = 4;

struct Range {
  size_t begin = 0, end = 0;
};

std::vector<Range> divide(size_t count) {
  const size_t threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
  const size_t parts = std::clamp<size_t>(count / kLeast, 1, threads);
  std::vector<Range> ranges;
  for (size_t i = 0; i < parts; ++i) ranges.push_back({count * i / parts, count * (i + 1) / parts});
  return ranges;
}

class GroupReader {
 public:
  GroupReader(const Benchmark& benchmark, const Analyser& analyser, bool each_member,
              Groups& groups)
      : benchmark_(benchmark), analyser_(analyser), each_member_(each_member), groups_(groups) {
    if (!benchmark.rules.only_done_counts) return;
    for (const Analyse& analyse : analyser.analyse) {
      for (const AnalyseFile& file : analyse.files) {
        std::set<std::string> steps = steps_read(benchmark, analyse, file);
        if (!steps.empty()) linked_.emplace_back(&file, std::move(steps));
      }
    }
  }

  Scanner read(const Range& range) const {
    Scanner scanner(benchmark_, analyser_);
    for (size_t i = range.begin; i < range.end; ++i) read(groups_.all()[i], scanner);
    return scanner;
  }

 private:
  void read(Group& group, Scanner& scanner) const {
    const Analyse* analyse = groups_.find(group.members.front()->step);
    const bool some_count = groups_.any_counts(group);
    if (each_member_ && group.members.size() > 1) group.own.resize(group.members.size());
    for (size_t i = 0; i < group.members.size(); ++i) {
      if (some_count && !groups_.counts(*group.members[i])) continue;
      if (!group.members[i]->began) continue;
      scanner.scan(*analyse, *group.members[i],
                   {&group.all, group.own.empty() ? nullptr : &group.own[i]},
                   files_left_out(group, *group.members[i]));
    }
  }

  // Whether the file, which a link leads to, is of work that is a measurement.
  bool leads_to_measured(const WorkpackageView& member, const std::set<std::string>& steps) const {
    return std::ranges::none_of(groups_.ancestors(member), [&](const WorkpackageView* one) {
      return steps.count(one->step) != 0 && !groups_.counts(*one);
    });
  }

  // The files that a link leads to and that are no measurement, where they are one for other
  // repeats.
  std::vector<const AnalyseFile*> files_left_out(const Group& group,
                                                 const WorkpackageView& member) const {
    std::vector<const AnalyseFile*> files;
    if (group.members.size() == 1) return files;
    for (const auto& [file, steps] : linked_) {
      if (leads_to_measured(member, steps)) continue;
      const bool others =
          std::ranges::any_of(group.members, [&, &above = steps](const WorkpackageView* one) {
            return groups_.counts(*one) && leads_to_measured(*one, above);
          });
      if (others) files.push_back(file);
    }
    return files;
  }

  const Benchmark& benchmark_;
  const Analyser& analyser_;
  const bool each_member_;
  Groups& groups_;
  // The files that a link leads to, and the steps that wrote them.
  std::vector<std::pair<const AnalyseFile*, std::set<std::string>>> linked_;
};

}  // namespace

Scanner scan_groups(const Benchmark& benchmark, const Analyser& analyser, bool each_member,
                    Groups& groups) {
  const GroupReader reader(benchmark, analyser, each_member, groups);
  const std::vector<Range> ranges = divide(groups.all().size());
  std::vector<std::future<Scanner>> others;
  for (size_t i = 1; i < ranges.size(); ++i)
    others.push_back(in_thread([&reader, range = ranges[i]] { return reader.read(range); }));
  Scanner scanner = reader.read(ranges.front());
  for (std::future<Scanner>& other : others) scanner.add(other.get());
  return scanner;
}

}  // namespace tally
