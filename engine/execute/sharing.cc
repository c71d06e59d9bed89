// Work that is done once for several workpackages: shared operations, setup and build steps.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "engine/execute/engine.h"
#include "engine/execute/work_directory.h"

namespace tally {

// --- shared operations
// -------------------------------------------------------------------------------

Status Engine::gather_shared(Task& task) {
  const int step = graph_[task.id()].wp.step;
  auto& group = gathered_[{step, task.shared_operation()}];
  group.push_back(task.id());
  if (static_cast<int>(group.size()) < open_of_step_[static_cast<size_t>(step)] ||
      !graph_.complete(step)) {
    return Status::ok();
  }
  const std::vector<int> all = std::move(group);
  gathered_.erase({step, task.shared_operation()});
  return run_shared(all);
}

// The last to arrive runs it.
Status Engine::run_shared(const std::vector<int>& group) {
  Task& last = *tasks_.at(group.back());
  last.run_shared();
  shared_groups_[last.id()] = std::vector<int>(group.begin(), group.end() - 1);
  Task::Next next{};
  if (Status s = last.advance(&next); !s) return s;
  if (next == Task::Next::process) {
    by_pid_[last.pid()] = last.id();
    return Status::ok();
  }
  return after_shared(last);
}

// A task goes on after a shared operation: the one that ran it, and, when it comes out of the queue
// again, each of the others.
Status Engine::after_shared(Task& task) {
  if (const auto group = shared_groups_.find(task.id()); group != shared_groups_.end()) {
    for (const int other : group->second) {
      if (Status s = tasks_.at(other)->shared_done(); !s) return s;
      slots_.queue(other, graph_[other].wp.step);
    }
    shared_groups_.erase(group);
  }
  return go_on(task);
}

// Siblings that failed, or that never came, may leave a group that is complete only now.
Status Engine::release_complete_groups() {
  for (auto entry = gathered_.begin(); entry != gathered_.end(); ++entry) {
    const int step = entry->first.first;
    if (static_cast<int>(entry->second.size()) < open_of_step_[static_cast<size_t>(step)] ||
        !graph_.complete(step)) {
      continue;
    }
    const std::vector<int> all = std::move(entry->second);
    gathered_.erase(entry);
    return run_shared(all);
  }
  return Status::ok();
}

// --- setup and build steps
// ---------------------------------------------------------------------------

// One package does the work for all whose commands, environment and files are the same.
Status Engine::share_setup(Task& task, bool* taken) {
  const int id = task.id();
  Package& package = graph_[id];
  StepInputs inputs;
  if (Status s = task.inputs(&inputs); !s) {
    task.fail(s.message());
    *taken = true;
    return ended(task);
  }
  add_tools(task.process_environment(task.work_dir()), &inputs);
  const std::string hash = "setup:" + task.step().name.value + ":" + content_hash(inputs);
  setup_of_[id] = hash;
  int owner = -1;
  if (const auto here = setups_.find(hash); here != setups_.end()) {
    owner = here->second;
  } else if (const auto before = journal_.shared(hash)) {
    owner = static_cast<int>(strtol(before->c_str(), nullptr, 10));
  }
  if (owner == id || owner < 0 || !graph_.has(owner)) {
    setups_[hash] = id;
    *taken = take_over(task, inputs, hash.substr(hash.rfind(':') + 1));
    if (*taken) return ended(task);
    made_from_[id] = std::move(inputs);
    return Status::ok();
  }
  *taken = true;
  if (!finished_well(graph_[owner].wp.state)) {
    setup_waiters_[hash].push_back(id);
    slots_.ended(id, package.wp.step);
    tasks_.erase(id);
    return Status::ok();
  }
  const std::string of = "workpackage " + std::to_string(owner);
  if (link_to_work(task, absolute_path(graph_.work_dir(graph_[owner])), of)) {
    task.end(State::done, "reused: commands, environment and files are those of " + of);
  }
  return ended(task);
}

// Work that an earlier run did, when there is any; run.log says which, or why it is done again.
bool Engine::take_over(Task& task, const StepInputs& inputs, const std::string& hash) {
  const Package& package = graph_[task.id()];
  std::string why = "it passes on its environment, which is not kept";
  if (!package.work_dir.empty()) why = "its work_dir is not of this run";
  std::string work;
  if (!task.step().exported && package.work_dir.empty()) work = store_.find(inputs, hash, &why);
  if (work.empty()) {
    log_.write(package.directory + ": done here, " + why + "; key " + hash);
    return false;
  }
  if (link_to_work(task, work, work)) {
    log_.write(package.directory + ": reused, " + why + "; key " + hash);
    task.end(State::done, "reused: commands, environment and files are " + why);
  }
  return true;
}

void Engine::keep_setup(int id) {
  const auto made = made_from_.find(id);
  if (made == made_from_.end()) return;
  const Package& package = graph_[id];
  if (package.wp.state == State::done && package.work_dir.empty() &&
      !graph_.step_of(package).exported) {
    // Only a saving for later: a store that cannot be written costs this run nothing.
    const std::string& hash = setup_of_[id];
    if (Status s = store_.keep(made->second, hash.substr(hash.rfind(':') + 1),
                               absolute_path(graph_.work_dir(package)));
        !s) {
      log_.write(package.directory + ": not kept for later runs: " + s.message());
    }
  }
  made_from_.erase(made);
}

// Puts a link to finished work in the place of the task's own. False: it failed, as its note says.
bool Engine::link_to_work(Task& task, const std::string& target, const std::string& of) {
  const Package& package = graph_[task.id()];
  const std::string work = absolute_path(graph_.folder(package)) + "/work";
  for (const int parent : package.wp.parents) {
    unlink((work + "/" + graph_.step_of(graph_[parent]).name.value).c_str());
  }
  if (rmdir(work.c_str()) != 0 && unlink(work.c_str()) != 0 && errno != ENOENT) {
    task.fail(work + ": cannot be replaced by a link to the work of " + of + ": it is not empty");
    return false;
  }
  if (Status s = make_link(target, work); !s) {
    task.fail(s.message());
    return false;
  }
  return true;
}

Status Engine::release_setup(int id, bool well) {
  const auto of = setup_of_.find(id);
  const std::string hash = of->second;
  setup_of_.erase(of);
  if (const auto owner = setups_.find(hash); owner == setups_.end() || owner->second != id) {
    return Status::ok();
  }
  if (!well) setups_.erase(hash);
  std::vector<int> waiters = std::move(setup_waiters_[hash]);
  setup_waiters_.erase(hash);
  for (const int waiter : waiters) slots_.queue(waiter, graph_[waiter].wp.step);
  return Status::ok();
}

}  // namespace tally
