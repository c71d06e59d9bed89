#include "engine/execute/shared_operations.h"

namespace tally {

bool SharedOperations::complete(int step, const std::vector<int>& group) const {
  return static_cast<int>(group.size()) >= open_of_step_[static_cast<size_t>(step)] &&
         graph_.complete(step);
}

bool SharedOperations::gather(Task& task) {
  const int step = task.graph_step();
  const Key key{step, task.shared_operation()};
  auto& group = gathered_[key];
  group.push_back(task.id());
  if (!complete(step, group)) return false;
  std::vector<int> all = std::move(group);
  gathered_.erase(key);
  begin(std::move(all));
  return true;
}

Task* SharedOperations::next_complete() {
  for (auto entry = gathered_.begin(); entry != gathered_.end(); ++entry) {
    if (!complete(entry->first.first, entry->second)) continue;
    std::vector<int> all = std::move(entry->second);
    gathered_.erase(entry);
    return &begin(std::move(all));
  }
  return nullptr;
}

// The last one to arrive runs the operation.
Task& SharedOperations::begin(std::vector<int> group) {
  Task& last = *tasks_.at(group.back());
  group.pop_back();
  last.run_shared();
  groups_[last.id()] = std::move(group);
  return last;
}

Status SharedOperations::release(int id) {
  const auto group = groups_.find(id);
  if (group == groups_.end()) return Status::ok();
  for (const int other : group->second) {
    TRY(tasks_.at(other)->shared_done());
    queue_.add(other, graph_[other].wp.step);
  }
  groups_.erase(group);
  return Status::ok();
}

void SharedOperations::put_back(int id) {
  const std::vector<int> group = take_group(id);
  for (const int other : group) {
    const Task& task = *tasks_.at(other);
    gathered_[{task.graph_step(), task.shared_operation()}].push_back(other);
  }
}

std::vector<int> SharedOperations::take_group(int id) {
  std::vector<int> group;
  if (const auto found = groups_.find(id); found != groups_.end()) {
    group = std::move(found->second);
    groups_.erase(found);
  }
  return group;
}

std::vector<SharedOperations::Gathered> SharedOperations::gathered() const {
  std::vector<Gathered> all;
  for (const auto& [key, group] : gathered_) all.push_back({key.first, group});
  return all;
}

}  // namespace tally
