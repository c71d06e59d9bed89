// Work that is done once for several workpackages: shared operations, setup and build steps.
#include <unistd.h>

#include <cerrno>

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
  return advance(task);
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

// One workpackage does the work for all whose inputs are the same; run.log says which, and why it is
// done again where that could be otherwise.
Status Engine::share_setup(Task& task, bool* taken) {
  const int id = task.id();
  WorkpackageNode& workpackage = graph_[id];
  const Environment environment = with_changes(context_.base, task.environment());
  const SetupContext context{benchmark_,         task.step(),     task.values(),
                             context_.evaluator, task.work_dir(), options_.shell,
                             task.environment(), environment};
  ReuseDecision decision;
  *taken = true;
  if (Status s = reuse_.decide(workpackage.wp, context, &decision); !s) {
    task.fail(Reason::files, s.message());
    return ended(task);
  }
  switch (decision.kind) {
    case ReuseDecision::Kind::work:
      log_.write(workpackage.directory + ": done here, " + decision.why);
      *taken = false;
      return Status::ok();
    case ReuseDecision::Kind::wait:
      slots_.ended(id, workpackage.wp.step);
      tasks_.erase(id);
      return Status::ok();
    case ReuseDecision::Kind::same_run: {
      const WorkpackageNode& owner = graph_[decision.of];
      const std::string of = "workpackage " + std::to_string(decision.of);
      if (link_to_work(task, absolute_path(graph_.work_dir(owner)), of)) {
        if (owner.environment) task.take_environment_of(*owner.environment);
        Outcome outcome = in_state(State::done, Reason::reused);
        outcome.workpackage = decision.of;
        task.end(std::move(outcome));
      }
      return ended(task);
    }
    case ReuseDecision::Kind::other_run:
      if (link_to_work(task, decision.work, decision.work)) {
        log_.write(workpackage.directory + ": reused, " + decision.why);
        Outcome outcome = in_state(State::done, Reason::reused);
        outcome.detail = decision.why;
        task.end(std::move(outcome));
      }
      return ended(task);
  }
  return Status::ok();
}

// Puts a link to finished work in the place of the task's own. False: it failed.
bool Engine::link_to_work(Task& task, const std::string& target, const std::string& of) {
  const WorkpackageNode& workpackage = graph_[task.id()];
  const std::string work = absolute_path(graph_.folder(workpackage)) + "/work";
  for (const int parent : workpackage.wp.parents) {
    unlink((work + "/" + graph_.step_of(graph_[parent]).name.value).c_str());
  }
  if (rmdir(work.c_str()) != 0 && unlink(work.c_str()) != 0 && errno != ENOENT) {
    task.fail(Reason::directory,
              work + ": cannot be replaced by a link to the work of " + of + ": it is not empty");
    return false;
  }
  if (Status s = make_link(target, work); !s) {
    task.fail(Reason::directory, s.message());
    return false;
  }
  return true;
}

// Its lineage goes into the journal with its end: children of a run that goes on need it.
Status Engine::record_setup(int id) {
  const WorkpackageNode& workpackage = graph_[id];
  std::string problem;
  const Lineage* lineage =
      reuse_.ended_well(workpackage.wp, absolute_path(graph_.work_dir(workpackage)), &problem);
  if (!problem.empty()) {
    log_.write(workpackage.directory + ": not kept for later runs: " + problem);
  }
  if (lineage == nullptr) return Status::ok();
  return journal_.set_setup({id, lineage->hash, lineage->instance});
}

void Engine::publish_setup(int id) {
  if (Status s = reuse_.publish(id); !s) {
    log_.write(graph_[id].directory + ": not kept for later runs: " + s.message());
  }
}

// Those of earlier engines.
Status Engine::restore_setups() {
  std::vector<Journal::Setup> setups;
  if (Status s = journal_.setups(&setups); !s) return s;
  for (const Journal::Setup& setup : setups) {
    if (!graph_.has(setup.workpackage)) continue;
    const WorkpackageNode& workpackage = graph_[setup.workpackage];
    const StepKind kind = graph_.step_of(workpackage).kind;
    if (kind != StepKind::setup && kind != StepKind::build) continue;
    if (finished_well(workpackage.wp.outcome.state)) {
      reuse_.restore(setup.workpackage, setup.hash, setup.instance);
    }
  }
  return Status::ok();
}

void Engine::release_setup(int id, bool well) {
  for (const int waiter : reuse_.release(id, well)) slots_.queue(waiter, graph_[waiter].wp.step);
}

}  // namespace tally
