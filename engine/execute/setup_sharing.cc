#include "engine/execute/setup_sharing.h"

#include "engine/base/own_files.h"
#include "engine/workspace/work_directory.h"

namespace tally {

Status SetupSharing::restore() {
  std::vector<Journal::Setup> setups;
  TRY(context_.run.journal().setups(&setups));
  const WorkpackageGraph& graph = context_.graph;
  for (const Journal::Setup& setup : setups) {
    if (!graph.has(setup.workpackage)) continue;
    const WorkpackageNode& workpackage = graph[setup.workpackage];
    if (!reuses_work(graph.step_of(workpackage).kind)) continue;
    if (finished_well(workpackage.wp.outcome.state)) {
      reuse_.restore(setup.workpackage, setup.hash, setup.instance);
    }
  }
  return Status::ok();
}

// One workpackage does the work for all with the same inputs. run.log says which one, and why work
// is done again that could have been reused.
SetupSharing::Next SetupSharing::decide(Task& task) {
  if (task.ended() != nullptr || !reuses_work(task.step().kind)) return Next::work;
  const WorkpackageNode& workpackage = context_.graph[task.id()];
  const Environment environment = with_changes(context_.base, task.environment());
  const SetupContext inputs{context_.run.benchmark(), task.step(),     task.values(),
                            context_.run.evaluator(), task.work_dir(), context_.settings.shell,
                            task.environment(),       environment};
  ReuseDecision decision;
  if (Status s = reuse_.decide(workpackage.wp, inputs, &decision); !s) {
    task.fail(Reason::files, s);
    return Next::ended;
  }
  if (decision.kind == ReuseDecision::Kind::wait) return Next::wait;
  if (decision.kind != ReuseDecision::Kind::work) return take_over(task, decision);
  context_.log.write(workpackage.directory + ": done here, " + decision.why);
  return Next::work;
}

SetupSharing::Next SetupSharing::take_over(Task& task, const ReuseDecision& decision) {
  Outcome outcome = in_state(State::done, Reason::reused);
  if (decision.kind == ReuseDecision::Kind::same_run) {
    const WorkpackageNode& owner = context_.graph[decision.of];
    const std::string of = "workpackage " + std::to_string(decision.of);
    if (!link_to_work(task, context_.graph.work_dir(owner), of)) return Next::ended;
    if (owner.environment) task.take_environment_of(*owner.environment);
    outcome.workpackage = decision.of;
  } else {
    if (!link_to_work(task, decision.work, decision.work)) return Next::ended;
    context_.log.write(context_.graph[task.id()].directory + ": reused, " + decision.why);
    outcome.detail = decision.why;
  }
  task.end(std::move(outcome));
  return Next::ended;
}

// Replaces the task's own work folder by a link to finished work. Returns false on failure.
bool SetupSharing::link_to_work(Task& task, const std::string& target, const std::string& of) {
  const WorkpackageGraph& graph = context_.graph;
  const WorkpackageNode& workpackage = graph[task.id()];
  const std::string work = graph.folder(workpackage) + "/work";
  for (const int parent : workpackage.wp.parents) {
    // One that cannot be removed is said below.
    const std::string link = work + "/" + graph.step_of(graph[parent]).name.value;
    [[maybe_unused]] const Status removed = remove_own(context_.run_dir, link);
  }
  if (const Status s = remove_own(context_.run_dir, work); !s) {
    const bool filled = s.reason() == ENOTEMPTY || s.reason() == EEXIST;
    task.fail(Reason::directory,
              filled ? Status::error(work + ": cannot be replaced by a link to the work of " + of +
                                     ": it is not empty")
                     : s);
    return false;
  }
  if (Status s = make_link(target, work); !s) {
    task.fail(Reason::directory, s);
    return false;
  }
  return true;
}

// Children need the lineage when the run is resumed.
Status SetupSharing::record(int id) {
  const WorkpackageNode& workpackage = context_.graph[id];
  if (!reuses_work(context_.graph.step_of(workpackage).kind)) return Status::ok();
  std::string problem;
  const Lineage* lineage =
      reuse_.ended_well(workpackage.wp, context_.graph.work_dir(workpackage), &problem);
  if (!problem.empty()) {
    context_.log.write(workpackage.directory + ": not kept for later runs: " + problem);
  }
  if (lineage == nullptr) return Status::ok();
  return context_.run.journal().set_setup({id, lineage->hash, lineage->instance});
}

void SetupSharing::publish(int id) {
  if (Status s = reuse_.publish(id); !s) {
    context_.log.write(context_.graph[id].directory + ": not kept for later runs: " + s.message());
  }
}

}  // namespace tally
