// Stops a run: its jobs in a queue, and its processes on this machine.
#include <signal.h>

#include "engine/execute/loop.h"

namespace tally {

// Handles a request to stop while jobs are in the queue. The jobs are left for `continue`, or
// cancelled. Sets `stop` to false when the request was withdrawn.
Status RunLoop::stop_jobs(bool* stop) {
  *stop = true;
  const size_t count = jobs_.submitted();
  if (count == 0) return Status::ok();
  const int asked = processes_.interrupted();
  status_line_.finish();
  auto answer = Parts::OnInterrupt::leave;
  if (context_.parts.on_interrupt && processes_.by_person()) {
    answer = context_.parts.on_interrupt(count, [&] { return processes_.interrupted() > asked; });
  }
  if (answer == Parts::OnInterrupt::keep_running) {
    *stop = false;
    return Status::ok();
  }
  if (answer == Parts::OnInterrupt::leave) {
    log_.write("stopped; " + std::to_string(count) + " jobs are left in the queue");
    return Status::ok();
  }
  std::vector<int> workpackages;
  if (Status s = jobs_.cancel_all(&workpackages); !s) {
    log_.write(s.message());
    status_line_.print(s.message() + "; the jobs are left in the queue", true);
    return Status::ok();
  }
  log_.write(std::to_string(count) + " jobs cancelled");
  TRY(jobs_.forget_names(workpackages));
  return put_back(workpackages, Reason::job_withdrawn);
}

// Ends all child processes, with a gentle signal first. Their workpackages can be resumed later.
Status RunLoop::stop_children() {
  status_line_.finish();
  for (const auto& [pid, id] : by_pid_) processes_.kill_tree(pid, SIGTERM);
  const auto patience = Clock::now() + std::chrono::seconds(5);
  const int asked = processes_.interrupted();
  bool killed = false;
  Status status;
  while (!by_pid_.empty()) {
    ProcessResult result;
    if (processes_.wait_any(std::chrono::milliseconds(200), &result)) {
      const auto found = by_pid_.find(result.pid);
      if (found == by_pid_.end()) continue;
      const int id = found->second;
      processes_.kill_tree(found->first, SIGKILL);  // it ignored the gentle signal
      by_pid_.erase(found);
      const Status set = graph_.transition(id, in_state(State::pending, Reason::interrupted));
      if (status) status = set;
      continue;
    }
    if (!killed && (Clock::now() > patience || processes_.interrupted() > asked)) {
      for (const auto& [pid, id] : by_pid_) processes_.kill_tree(pid, SIGKILL);
      killed = true;
    }
  }
  return status;
}

}  // namespace tally
