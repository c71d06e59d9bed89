#include "engine/execute/finisher.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/presence.h"
#include "engine/base/secrets.h"
#include "engine/execute/analysed_files_recorder.h"

namespace tally {

bool Finisher::ended_before(int id, bool restored) {
  const WorkpackageNode& workpackage = context_.graph[id];
  const Outcome& outcome = workpackage.wp.outcome;
  switch (outcome.state) {
    case State::done:
    case State::expected:
      // The marker files follow the states in the journal. A kill may have come between the two.
      // They are for people: one that may be there is left.
      if (bool there = true; restored) {
        Status looked = path_exists(context_.graph.folder(workpackage) + "/done", &there);
        if (looked && !there) mark(id, "done", time_stamp());
      }
      return true;
    case State::failed:
      mark(id, "error", message(outcome));
      return true;
    case State::lost:
      // The job may have reported its end since then, so it is checked once more.
      return workpackage.job_name.empty();
    default:
      return false;
  }
}

// A workpackage whose parameters could not be evaluated has failed already.
void Finisher::take_created(const std::vector<int>& created) {
  for (const int id : created) {
    const WorkpackageNode& workpackage = context_.graph[id];
    if (workpackage.wp.outcome.state == State::failed) {
      note_failure();
      const std::string why = message(workpackage.wp.outcome);
      mark(id, "error", why);
      context_.log.write(workpackage.directory + ": " + why);
    } else {
      shared_.opened(workpackage.wp.step);
      queue_.add(id, workpackage.wp.step, context_.graph.turn_of(workpackage));
    }
  }
}

void Finisher::note_failure() {
  failed_now_ = true;
  if (context_.settings.exit_on_error) queue_.close();
}

Status Finisher::end(Task& task, bool resubmit) {
  const int id = task.id();
  const int step = task.graph_step();
  queue_.ended(id, step);
  // The workpackages that it ran a shared operation for fail with it, or a resumed run would do it
  // again for them. That it waits for a done_file is recorded with its progress, or a resumed run
  // would do the operation again and take its output for an earlier one's.
  const bool waits = task.ended()->state == State::waiting;
  const bool together = waits || shared_.runs(id);
  if (together) {
    TRY(context_.run.journal().begin());
  }
  bool again = false;
  bool well = finished_well(task.ended()->state);
  if (well) {
    bool put_off = false;
    TRY(ended_well(task, &put_off));
    well = !put_off;
  }
  if (waits) {
    TRY(task.write_progress());
  }
  if (!well) {
    TRY(ended_badly(task, resubmit, &again));
  }
  const State state = context_.graph[id].wp.outcome.state;
  std::vector<int> group;
  if (again) {
    shared_.put_back(id);
  } else if (state == State::pending) {
    report(task);
    shared_.put_back(id);
  } else {
    report(task);
    if (state != State::waiting) shared_.closed(step);
    group = shared_.take_group(id);
  }
  tasks_.erase(id);
  // It failed while it ran a shared operation for others.
  for (const int other : group) {
    Task& waiting = *tasks_.at(other);
    Outcome outcome = failure(Reason::shared_failed, "");
    outcome.workpackage = id;
    waiting.end(std::move(outcome));
    TRY(end(waiting));
  }
  if (together) {
    TRY(context_.run.journal().commit());
  }
  for (const int waiter : setups_.release(id, finished_well(state))) {
    queue_.add(waiter, context_.graph[waiter].wp.step);
  }
  return Status::ok();
}

// The end, the children and what they inherit are recorded together, before anything shows it.
Status Finisher::ended_well(Task& task, bool* put_off) {
  const int id = task.id();
  WorkpackageNode& workpackage = context_.graph[id];
  const AnalysedFilesRecorder recorder(context_);
  AnalysedFilesRecorder::End files;
  if (Status s = recorder.look_after(id, true, &files); !s) {
    *put_off =
        context_.run.benchmark().rules.outside_files_are_guarded || may_pass(s, context_.run_dir);
    if (*put_off) {
      task.put_off(s);
      return Status::ok();
    }
    context_.log.write(s.message());
    files = {};
  }
  if (task.step().exported) {
    workpackage.environment = std::make_unique<EnvironmentChanges>(task.environment());
  } else {
    workpackage.environment.reset();
  }
  std::vector<int> created;
  Status children;
  const Status recorded = context_.run.journal().transaction([&] {
    TRY(context_.graph.transition(id, task.take_end()));
    children = context_.graph.make_children(id, &created);
    if (task.step().exported) {
      TRY(context_.run.journal().operation_done(id, workpackage.wp.cycle,
                                                workpackage.operations_done - 1,
                                                pack_changes(task.environment()), {}));
    }
    TRY(setups_.record(id));
    TRY(recorder.record(id, std::move(files)));
    return context_.graph.record(created);
  });
  TRY(recorded);
  mark(id, "done", time_stamp());
  setups_.publish(id);
  if (!children) return children;
  take_created(created);
  return Status::ok();
}

Status Finisher::ended_badly(Task& task, bool resubmit, bool* again) {
  const int id = task.id();
  WorkpackageNode& workpackage = context_.graph[id];
  const int retries =
      static_cast<int>(strtol(task.values().apply(task.step().retry).c_str(), nullptr, 10));
  const int tries = workpackage.attempts - workpackage.resubmits;
  const bool retry = task.ended()->state == State::failed && tries < retries && queue_.is_open();
  *again = retry || resubmit;
  if (*again) {
    const std::string which =
        resubmit ? "through no fault of its own"
                 : "retry " + std::to_string(tries + 1) + " of " + std::to_string(retries);
    return try_again(task, which);
  }
  if (task.ended()->state == State::failed) {
    const AnalysedFilesRecorder recorder(context_);
    AnalysedFilesRecorder::End files;
    if (Status s = recorder.look_after(id, false, &files); s || !may_pass(s, context_.run_dir)) {
      if (!s) context_.log.write(s.message());
      if (s = recorder.record(id, std::move(files)); !s) return s;
    } else {
      task.put_off(s);
    }
  }
  TRY(context_.graph.transition(id, task.take_end()));
  const Outcome& outcome = workpackage.wp.outcome;
  if (outcome.state == State::failed) note_failure();
  if (has_failed(outcome.state)) {
    mark(id, "error", message(outcome));
  } else if (outcome.state == State::waiting) {
    queue_.keep_waiting(workpackage.wp.step);
  }
  return Status::ok();
}

Status Finisher::try_again(Task& task, const std::string& which) {
  const std::string why = message(task.take_end());
  const int id = task.id();
  WorkpackageNode& workpackage = context_.graph[id];
  const std::string line = workpackage.directory + ": trying again, " + which + ": " + why;
  context_.log.write(line);
  context_.status_line.print(line, false);
  ++workpackage.attempts;
  TRY(context_.graph.start_anew(id, task.sizes_before()));
  // The files of the failed attempt are kept for people to look at. An engine that is killed before
  // this leaves them in place, and the next attempt cuts their output back.
  const std::string work = context_.graph.folder(workpackage) + "/work";
  std::string kept = work + ".failed." + std::to_string(workpackage.attempts);
  struct stat info {};
  for (int more = 2; lstat(kept.c_str(), &info) == 0; ++more) {
    kept = work + ".failed." + std::to_string(workpackage.attempts) + "." + std::to_string(more);
  }
  // Files that stayed would be taken for output of the next attempt. There may be no folder:
  // because it could not be made, or because a link is in its place, which fails the next attempt,
  // too.
  Status moved = rename_own(context_.run_dir, absolute_path(work), absolute_path(kept));
  const int reason = moved.reason();
  if (!moved && reason != ENOENT && reason != ELOOP && reason != ENOTDIR) return moved;
  task.keep_outputs(kept);
  task.set_back_appended(kept);
  context_.failed_attempts[id] = {why, task.placed()};
  queue_.add(id, workpackage.wp.step);
  return Status::ok();
}

void Finisher::mark(int id, const char* name, const std::string& text) {
  const std::string folder = context_.graph.folder(context_.graph[id]);
  const std::string path = folder + "/" + name;
  const int mode = context_.secrets ? private_mode : 0644;  // a failed command is in it
  Status s = write_own_file(context_.run_dir, path, text, mode);
  if (!s && s.reason() == ENOENT) {
    s = make_own_directories(context_.run_dir, folder);
    if (s) s = write_own_file(context_.run_dir, path, text, mode);
  }
  // The marker is for people only; the journal has the state.
  if (!s) context_.log.write(s.message());
}

void Finisher::report(const Task& task) {
  const WorkpackageNode& workpackage = context_.graph[task.id()];
  const Outcome& outcome = workpackage.wp.outcome;
  const char* word = "done";
  if (outcome.state == State::pending) word = "put off until the run is continued";
  if (outcome.state == State::failed) word = "failed";
  if (outcome.state == State::waiting) word = "waiting";
  if (outcome.state == State::lost) word = "lost";
  std::string line = workpackage.directory + ": " + word;
  if (const std::string why = message(outcome); !why.empty()) line += ": " + why;
  if (outcome.state != State::done || context_.settings.verbose > 0) context_.log.write(line);
  context_.status_line.print(line, false);
  if (context_.settings.verbose > 1) show_output(task);
}

// Shows the commands' standard output.
void Finisher::show_output(const Task& task) {
  StatusOutput* const output = context_.parts.output;
  if (output == nullptr) return;
  context_.status_line.finish();
  for (const std::string& path : task.outputs()) {
    const bool errors =
        std::any_of(task.step().operations.begin(), task.step().operations.end(),
                    [&](const Operation& operation) {
                      const std::string name = task.values().path(operation.stderr_file);
                      return path.substr(path.rfind('/') + 1) == (name.empty() ? "stderr" : name);
                    });
    if (errors) continue;
    [[maybe_unused]] const Status shown =
        read_file(path, [&](const char* bytes, size_t count) { output->show(bytes, count); });
  }
}

}  // namespace tally
