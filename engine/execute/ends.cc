// What the end of a workpackage leads to: its state, its children, another try.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/execute/engine.h"

namespace tally {

Status Engine::ended(Task& task) {
  const int id = task.id();
  const int step = graph_[id].wp.step;
  slots_.ended(id, step);
  const State state = task.state();
  Status status;
  if (finished_well(state)) {
    status = ended_well(task);
  } else {
    status = ended_badly(task);
  }
  if (!status) return status;
  const bool again = graph_[id].wp.outcome.state == State::pending;
  if (!again) report_end(task);
  if (state != State::waiting && !again) --open_of_step_[static_cast<size_t>(step)];
  std::vector<int> group;
  if (const auto shared = shared_groups_.find(id); shared != shared_groups_.end() && !again) {
    group = shared->second;
    shared_groups_.erase(shared);
  }
  tasks_.erase(id);
  // It ran a shared operation for others and did not come through.
  for (const int other : group) {
    Task& waiting = *tasks_.at(other);
    Outcome outcome = failure(Reason::shared_failed, "");
    outcome.workpackage = id;
    waiting.end(std::move(outcome));
    if (Status s = ended(waiting); !s) return s;
  }
  release_setup(id, finished_well(state));
  return Status::ok();
}

// The end, its children and what it leaves to them are recorded together, before anything shows it.
Status Engine::ended_well(Task& task) {
  const int id = task.id();
  WorkpackageNode& workpackage = graph_[id];
  workpackage.wp.outcome = task.outcome();
  if (task.step().exported) {
    workpackage.environment = std::make_unique<EnvironmentChanges>(task.environment());
  } else {
    workpackage.environment.reset();
  }
  std::vector<int> created;
  Status children = graph_.make_children(id, &created);
  if (Status s = journal_.begin(); !s) return s;
  if (task.step().exported) {
    if (Status s =
            journal_.operation_done(id, workpackage.wp.cycle, workpackage.operations_done - 1,
                                    pack_changes(task.environment()), {});
        !s) {
      return s;
    }
  }
  if (Status s = record_setup(id); !s) return s;
  if (Status s = journal_.set_outcome(id, task.outcome()); !s) return s;
  if (Status s = graph_.record(created); !s) return s;
  if (Status s = journal_.commit(); !s) return s;
  ++done_;
  mark(id, "done", time_stamp());
  publish_setup(id);
  if (!children) return children;
  return queue_created(created);
}

Status Engine::ended_badly(Task& task) {
  const int id = task.id();
  WorkpackageNode& workpackage = graph_[id];
  const State state = task.state();
  const int retries =
      static_cast<int>(strtol(task.values().apply(task.step().retry).c_str(), nullptr, 10));
  const int tries = workpackage.attempts - workpackage.resubmits;
  const bool retry = state == State::failed && tries < retries && may_start();
  if (retry || again_) {
    const std::string which =
        again_ ? "through no fault of its own"
               : "retry " + std::to_string(tries + 1) + " of " + std::to_string(retries);
    const std::string line =
        workpackage.directory + ": trying again, " + which + ": " + message(task.outcome());
    log_.write(line);
    status_line_.print(line, false);
    ++workpackage.attempts;
    again_ = false;
    // The failed try's files stay for people to look at.
    const std::string work = graph_.folder(workpackage) + "/work";
    const std::string kept = work + ".failed." + std::to_string(workpackage.attempts);
    [[maybe_unused]] const int moved = rename(work.c_str(), kept.c_str());
    workpackage.wp.outcome = {};
    workpackage.wp.cycle = 0;
    workpackage.operations_done = 0;
    workpackage.prepared = false;
    workpackage.environment.reset();
    workpackage.outputs.clear();
    workpackage.job_name.clear();
    workpackage.job_id.clear();
    slots_.queue(id, workpackage.wp.step);
    return journal_.reset(id);
  }
  workpackage.wp.outcome = task.outcome();
  if (Status s = journal_.set_outcome(id, task.outcome()); !s) return s;
  if (state == State::failed) {
    ++failed_;
    mark(id, "error", message(task.outcome()));
  } else if (state == State::lost) {
    ++lost_;
    mark(id, "error", message(task.outcome()));
  } else {
    ++waiting_;
    slots_.keep_waiting(workpackage.wp.step);
  }
  return Status::ok();
}

void Engine::mark(int id, const char* name, const std::string& text) {
  const std::string path = graph_.folder(graph_[id]) + "/" + name;
  unlink(path.c_str());
  Status s = append_file(path, text);
  if (!s) {
    s = make_directories(graph_.folder(graph_[id]));
    if (s) s = append_file(path, text);
  }
  // For people only: the journal has the state.
  if (!s) log_.write(s.message());
}

void Engine::report_end(const Task& task) {
  const WorkpackageNode& workpackage = graph_[task.id()];
  const char* word = "done";
  if (task.state() == State::failed) word = "failed";
  if (task.state() == State::waiting) word = "waiting";
  if (task.state() == State::lost) word = "lost";
  std::string line = workpackage.directory + ": " + word;
  if (const std::string why = message(task.outcome()); !why.empty()) line += ": " + why;
  if (task.state() != State::done || options_.verbose) log_.write(line);
  status_line_.print(line, false);
  if (options_.show_output) print_output(task);
}

// To standard output, as it was printed there.
void Engine::print_output(const Task& task) {
  status_line_.finish();
  for (const auto& [path, size] : task.sizes()) {
    const bool errors =
        std::any_of(task.step().operations.begin(), task.step().operations.end(),
                    [&, file = path](const Operation& operation) {
                      const std::string name = task.values().path(operation.stderr_file);
                      return file.substr(file.rfind('/') + 1) == (name.empty() ? "stderr" : name);
                    });
    std::string text;
    if (errors || !read_file(path, &text)) continue;
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  std::fflush(stdout);
}

}  // namespace tally
