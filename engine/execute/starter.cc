#include "engine/execute/starter.h"

#include <cstdlib>
#include <string>

namespace tally {

Status Starter::start(int id, Task** started) {
  *started = nullptr;
  Workpackage& workpackage = context_.graph[id].wp;
  // The task is made before the state changes, because it reads the previous state.
  auto task = std::make_unique<Task>(context_, id);
  const std::string slots = task->values().apply(task->step().gpu_slots);
  const int gpus = static_cast<int>(strtol(slots.c_str(), nullptr, 10));
  const bool local_gpus = gpus > 0 && task->platform().local();
  const auto granted =
      local_gpus ? queue_.take_gpus(id, workpackage.step, gpus) : Queue::Gpus::taken;
  if (granted == Queue::Gpus::later) return Status::ok();
  const Outcome& before = workpackage.outcome;
  if (before.state != State::waiting || before.reason == Reason::before_shared) {
    TRY(context_.graph.transition(id, in_state(State::running)));
  } else {
    context_.graph.look_again(id);
  }
  last_ = id;
  Task& t = *(tasks_[id] = std::move(task));
  t.prepare_folder();
  queue_.started(id, workpackage.step);
  if (granted == Queue::Gpus::never && !queue_.gpus_known()) {
    t.fail(Reason::gpus, queue_.gpus_known());
  } else if (granted == Queue::Gpus::never) {
    t.fail(Reason::gpus, "needs " + std::to_string(gpus) +
                             (gpus == 1 ? " GPU slot" : " GPU slots") + ", this machine has " +
                             std::to_string(queue_.gpu_count()));
  } else if (local_gpus) {
    t.set_gpus(queue_.gpus_of(id));
  }
  *started = &t;
  return Status::ok();
}

int RepeatStop::ended() const {
  const WorkpackageGraph& graph = context_.graph;
  return graph.count(State::done) + graph.count(State::expected) + graph.count(State::failed) +
         graph.count(State::lost);
}

Status RepeatStop::decide(int id, bool* dropped) {
  *dropped = false;
  const WorkpackageNode& workpackage = context_.graph[id];
  const RepeatUntil& until = context_.graph.step_of(workpackage).until;
  RepeatJudge* const judge = context_.parts.repeats;
  const Turn turn = context_.graph.turn_of(workpackage);
  const bool in_fleet = turn.chain != 0;
  if ((until.metric.value.empty() && !in_fleet) || judge == nullptr) return Status::ok();
  if (in_fleet ? turn.phase == 0 && turn.round == 0 : turn.round < until.warmup + until.min)
    return Status::ok();
  // The results are read once a round, so that the cost stays linear in the workpackages; in a
  // fleet, whose machines have rounds of their own, when something has ended since.
  const int round = in_fleet ? ended() : turn.round;
  if (round != asked_) {
    asked_ = round;
    std::vector<int> ids;
    const Status read = judge->not_needed(context_.run, &ids);
    if (!read) context_.log.write("repeat until: all repeats run: " + read.message());
    if (!read) ids.clear();
    not_needed_ = {ids.begin(), ids.end()};
  }
  if (not_needed_.count(id) == 0) {
    spent_ = judge->is_spent();
    return Status::ok();
  }
  context_.log.write(workpackage.directory + ": not needed: " +
                     (in_fleet ? "decided" : "'" + until.metric.value + "' is precise enough"));
  TRY(context_.run.journal().remove(id));
  context_.graph.drop(id);
  ++dropped_;
  *dropped = true;
  return Status::ok();
}

}  // namespace tally
