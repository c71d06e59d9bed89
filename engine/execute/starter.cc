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
    if (Status s = context_.graph.transition(id, in_state(State::running)); !s) return s;
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

}  // namespace tally
