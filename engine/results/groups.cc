#include "engine/results/groups.h"

#include <algorithm>

#include "engine/results/families.h"
#include "engine/results/missing_rows.h"
#include "engine/results/precision.h"

namespace tally {

Groups::Groups(const Benchmark& benchmark, const Analyser& analyser,
               const std::vector<WorkpackageView>& workpackages)
    : benchmark_(benchmark), analyser_(analyser), own_(parameters_of_workpackages(benchmark)) {
  for (const WorkpackageView& workpackage : workpackages)
    by_id_.insert_or_assign(by_id_.end(), workpackage.id, &workpackage);
}

bool Groups::counts(const WorkpackageView& workpackage) const {
  return tally::counts(benchmark_, workpackage);
}

bool Groups::any_counts(const Group& group) const {
  return std::any_of(group.members.begin(), group.members.end(),
                     [&](const WorkpackageView* member) { return counts(*member); });
}

// In JUBE mode, everything that was started counts as successful.
bool Groups::any_ended_well(const Group& group) const {
  return benchmark_.as_jube ||
         std::any_of(group.members.begin(), group.members.end(),
                     [](const WorkpackageView* member) { return member->state == State::done; });
}

const Analyse* Groups::find(const std::string& step) const {
  for (const Analyse& analyse : analyser_.analyse) {
    if (analyse.step.value == step) return &analyse;
  }
  return nullptr;
}

void Groups::find_warmups() {
  for (const auto& [id, workpackage] : by_id_) {  // parents have lower ids
    const auto& parents = workpackage->parents;
    if (is_warmup(benchmark_, *workpackage) ||
        std::any_of(parents.begin(), parents.end(),
                    [&](int parent) { return warmups_.count(parent) != 0; }))
      warmups_.insert(id);
  }
}

// In Tally's own files, iterations of a parent are reduced whatever follows from their number.
std::string Groups::own_values(const WorkpackageView& workpackage) const {
  std::string text;
  if (!benchmark_.as_jube) return text;
  for (const auto& [name, value] : workpackage.values) {
    if (own_.count(name) != 0) text += name + '=' + value + '\0';
  }
  return text;
}

void Groups::make() {
  find_warmups();
  std::unordered_map<int, size_t> families;
  if (analyser_.reduce) {
    families = find_families(
        by_id_, [&](const WorkpackageView& p) { return point_key(p, own_); },
        [&](const WorkpackageView& p) { return own_values(p); });
  }
  std::unordered_map<size_t, size_t> of_family;
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
    groups_.emplace_back().members.push_back(workpackage);
  }
  for (const Group& group : groups_) {
    for (const Group* ancestor : ancestors(group))
      groups_[static_cast<size_t>(ancestor - groups_.data())].leaf = false;
  }
}

std::vector<const Group*> Groups::ancestors(const Group& group) const {
  std::vector<const Group*> result;
  for (const WorkpackageView* workpackage : ancestors(group.members)) {
    const auto found = group_of_.find(workpackage->id);
    if (found == group_of_.end()) continue;
    const Group* above = &groups_[found->second];
    if (std::find(result.begin(), result.end(), above) == result.end()) result.push_back(above);
  }
  return result;
}

std::vector<const WorkpackageView*> Groups::ancestors(
    const std::vector<const WorkpackageView*>& members) const {
  if (std::all_of(members.begin(), members.end(),
                  [](const WorkpackageView* member) { return member->parents.empty(); }))
    return {};
  std::vector<const WorkpackageView*> queue = members;
  std::set<int> seen;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const int parent : queue[i]->parents) {
      const auto found = by_id_.find(parent);
      if (found != by_id_.end() && seen.insert(parent).second) queue.push_back(found->second);
    }
  }
  queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(members.size()));
  return queue;
}

std::vector<const Found*> Groups::found_above(const WorkpackageView& workpackage) const {
  std::vector<const Found*> above;
  for (const WorkpackageView* parent : ancestors({&workpackage})) {
    const auto at = group_of_.find(parent->id);
    if (at == group_of_.end()) continue;
    const Group& group = groups_[at->second];
    const auto member = std::find(group.members.begin(), group.members.end(), parent);
    above.push_back(&group.found_of(static_cast<size_t>(member - group.members.begin())));
  }
  return above;
}

bool Groups::was_sought(const std::string& pattern, const Group& group) const {
  if (group.found.count(pattern) != 0) return true;
  const std::vector<const Group*> above = ancestors(group);
  return std::any_of(above.begin(), above.end(),
                     [&](const Group* one) { return one->found.count(pattern) != 0; });
}

}  // namespace tally
