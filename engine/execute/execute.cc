#include "engine/execute/execute.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "engine/base/text.h"
#include "engine/execute/engine.h"
#include "engine/execute/job_table.h"
#include "engine/execute/left_behind.h"
#include "engine/execute/work_directory.h"

namespace tally {
Engine::Engine(const Benchmark& benchmark, Expander& expander, TextPool& pool, Journal& journal,
               const std::string& run_dir, const RunOptions& options, Evaluator& evaluator,
               ProcessRunner& processes, Scheduler& scheduler)
    : benchmark_(benchmark),
      journal_(journal),
      options_(options),
      processes_(processes),
      log_(run_dir + "/run.log"),
      graph_(benchmark, expander, pool, journal),
      jobs_(scheduler, journal, log_),
      slots_(benchmark, options),
      context_{benchmark,
               graph_,
               expander,
               pool,
               journal,
               evaluator,
               processes,
               options,
               current_environment(),
               with_programs(current_environment(), options.programs),
               absolute_path(run_dir),
               log_,
               run_mark(run_dir, journal.run().start)},
      status_line_(nullptr, options.hide_animation, options.verbose),
      run_dir_(run_dir),
      reuse_(benchmark, absolute_path(run_dir + "/.."), options.fresh),
      open_of_step_(benchmark.steps.size(), 0) {}

Status Engine::run(RunSummary* summary) {
  Status status = resume();
  while (status) {
    status = fill_slots();
    if (status) status = submit_packs();
    if (!status) break;
    if (processes_.interrupted() > answered_) {
      status = stop_jobs(&interrupted_);
      answered_ = processes_.interrupted();
      if (status && interrupted_) status = stop_children();
      if (!status || interrupted_) break;
    }
    const bool leave = !options_.wait_for_jobs && jobs_.settled();
    if (by_pid_.empty() && (jobs_.count() == 0 || leave)) {
      if (may_start() && !gathered_.empty()) {
        const size_t before = gathered_.size();
        status = release_complete_groups();
        if (!status || gathered_.size() != before || !by_pid_.empty()) continue;
      }
      break;
    }
    show();
    status = wait();
  }
  if (!status && !by_pid_.empty()) {
    // The journal cannot be written: what runs now could not be recorded any more.
    const Status stopped = stop_children();
    if (!stopped) log_.write(stopped.message());
  }
  status_line_.finish();
  if (status) status = put_back(jobs_.unsubmitted(), Reason::none);
  if (status) status = put_back(packs_.members(), Reason::none);
  for (const auto& [key, group] : gathered_) {
    for (const int id : group) {
      graph_[id].wp.outcome = in_state(State::waiting, Reason::before_shared);
      if (status) status = journal_.set_outcome(id, graph_[id].wp.outcome);
    }
  }
  count(summary);
  if (status && may_start() && jobs_.count() == 0 && waiting_ == 0) {
    for (const auto& [key, group] : gathered_) {
      if (const char* by = slots_.what_holds(key.first); by != nullptr)
        summary->blocked.push_back({key.first, by});
    }
  }
  log_.write("ended: " + std::to_string(summary->done) + " done, " +
             std::to_string(summary->failed) + " failed, " + std::to_string(summary->waiting) +
             " waiting, " + std::to_string(summary->lost) + " lost, " +
             std::to_string(summary->running) + " in the queue, " + std::to_string(summary->open) +
             " not started" + (summary->interrupted ? "; interrupted" : ""));
  if (Status s = touch_timestamps(run_dir_); !s && status) status = s;
  return status;
}

// The workpackages there are, into the queue: all of a new run, what is left of a continued one.
Status Engine::resume() {
  bool restored = false;
  if (Status s = graph_.start(&restored); !s) return s;
  if (restored) {
    if (Status s = restore_setups(); !s) return s;
  }
  log_.write(restored ? "continued" : "started");
  std::vector<int> created;
  std::vector<Unfinished> left_running;
  const size_t known = graph_.all().size();
  for (size_t i = 0; i < known; ++i) {
    WorkpackageNode& workpackage = graph_.all()[i];
    const int id = workpackage.wp.id;
    switch (workpackage.wp.outcome.state) {
      case State::done:
      case State::expected:
        ++done_;
        // The marks are effects of the journal's states; a kill may have come between.
        if (restored && !path_exists(graph_.folder(workpackage) + "/done"))
          mark(id, "done", time_stamp());
        if (restored) {
          if (Status s = graph_.make_children(id, &created); !s) return s;
        }
        break;
      case State::failed:
        ++failed_;
        ++failed_before_;
        mark(id, "error", message(workpackage.wp.outcome));
        break;
      case State::lost:
        // Its job may have said a word since: looked at once more.
        if (workpackage.job_name.empty()) {
          ++lost_;
          break;
        }
        [[fallthrough]];
      case State::running:
        if (restored && workpackage.job_name.empty())
          left_running.push_back(unfinished(workpackage));
        [[fallthrough]];
      default:
        ++open_of_step_[static_cast<size_t>(workpackage.wp.step)];
        slots_.queue(id, workpackage.wp.step, workpackage.wp.repetition);
    }
  }
  if (!left_running.empty()) end_left_behind(left_running);
  if (created.empty()) return Status::ok();
  if (Status s = journal_.begin(); !s) return s;
  if (Status s = graph_.record(created); !s) return s;
  if (Status s = journal_.commit(); !s) return s;
  return queue_created(created);
}

// What a killed engine may have left of it.
Unfinished Engine::unfinished(const WorkpackageNode& workpackage) const {
  Unfinished left{workpackage_mark(context_.mark, workpackage.wp.id), {}};
  const std::string folder = absolute_path(graph_.folder(workpackage)) + "/work/";
  for (const auto& [path, size] : workpackage.outputs) {
    if (path.rfind(folder, 0) == 0) left.outputs.push_back(path);
  }
  for (const char* name : {"stdout", "stderr"}) left.outputs.push_back(folder + name);
  return left;
}

// New workpackages into the queue; those that could not even get their parameters are failures at once.
Status Engine::queue_created(const std::vector<int>& created) {
  for (const int id : created) {
    const WorkpackageNode& workpackage = graph_[id];
    if (workpackage.wp.outcome.state == State::failed) {
      ++failed_;
      const std::string why = message(workpackage.wp.outcome);
      mark(id, "error", why);
      log_.write(workpackage.directory + ": " + why);
    } else {
      ++open_of_step_[static_cast<size_t>(workpackage.wp.step)];
      slots_.queue(id, workpackage.wp.step, workpackage.wp.repetition);
    }
  }
  return Status::ok();
}

Status Engine::fill_slots() {
  while (may_start()) {
    const int id = slots_.next(static_cast<int>(by_pid_.size()));
    if (id < 0) break;
    const auto known = tasks_.find(id);
    if (Status s = known != tasks_.end() ? after_shared(*known->second) : start(id); !s) return s;
  }
  return Status::ok();
}

Status Engine::start(int id) {
  WorkpackageNode& workpackage = graph_[id];
  // Made before the state changes: it looks at the one before.
  auto task = std::make_unique<Task>(context_, id);
  Task& t = *task;
  const int gpus =
      static_cast<int>(strtol(t.values().apply(t.step().gpu_slots).c_str(), nullptr, 10));
  const bool local_gpus = gpus > 0 && t.platform().local();
  const auto granted =
      local_gpus ? slots_.take_gpus(id, workpackage.wp.step, gpus) : Slots::Gpus::taken;
  if (granted == Slots::Gpus::later) return Status::ok();
  const Outcome& before = workpackage.wp.outcome;
  if (before.state != State::waiting || before.reason == Reason::before_shared) {
    if (Status s = set_state(id, State::running, Reason::none); !s) return s;
  }
  workpackage.wp.outcome = in_state(State::running);
  last_started_ = id;
  tasks_[id] = std::move(task);
  t.prepare_folder();
  slots_.started(id, workpackage.wp.step);
  if (granted == Slots::Gpus::never) {
    t.fail(Reason::gpus, "needs " + std::to_string(gpus) +
                             (gpus == 1 ? " GPU slot" : " GPU slots") + ", this machine has " +
                             std::to_string(slots_.gpu_count()));
  } else if (local_gpus) {
    t.set_gpus(slots_.gpus_of(id));
  }
  if (t.state() == State::running &&
      (t.step().kind == StepKind::setup || t.step().kind == StepKind::build)) {
    bool taken = false;
    if (Status s = share_setup(t, &taken); !s || taken) return s;
  }
  return advance(t);
}

Status Engine::advance(Task& task) {
  Task::Next next{};
  if (Status s = task.advance(&next); !s) return s;
  switch (next) {
    case Task::Next::process:
      by_pid_[task.pid()] = task.id();
      return Status::ok();
    case Task::Next::shared:
      return gather_shared(task);
    case Task::Next::job:
      return submit(task);
    case Task::Next::ended:
      return ended(task);
  }
  return Status::ok();
}

// The jobs and what runs here, with the parameters that came of value lists.
std::vector<JobView> Engine::running_views() const {
  std::vector<JobView> views = jobs_.views();
  for (const auto& [pid, id] : by_pid_) {
    JobView& view = views.emplace_back();
    view.workpackage = id;
    view.id = "here";
    view.label = directory_of(benchmark_, graph_[id].wp);
    view.state = "running";
    view.running = true;
  }
  for (JobView& view : views) {
    if (!graph_.has(view.workpackage)) continue;
    for (const Binding& binding : graph_[view.workpackage].wp.point.bindings) {
      if (binding.index == Binding::no_index) continue;
      view.parameters += (view.parameters.empty() ? "" : " ") + context_.pool[binding.name] + "=" +
                         one_line(context_.pool[binding.value]);
    }
  }
  return views;
}

void Engine::show() {
  if (!status_line_.due()) return;
  Progress progress;
  progress.total = static_cast<int>(graph_.all().size());
  progress.done = done_;
  progress.failed = failed_;
  progress.lost = lost_;
  progress.waiting = waiting_;
  progress.running = static_cast<int>(by_pid_.size());
  progress.jobs = static_cast<int>(jobs_.count());
  if (last_started_ >= 0 && graph_.has(last_started_))
    progress.current = graph_[last_started_].directory;
  std::vector<std::string> table;
  if (jobs_.count() + by_pid_.size() > 1 || jobs_.count() > 0) {
    table = job_lines(running_views(), status_line_.table_rows(), status_line_.table_columns(),
                      std::time(nullptr));
  }
  status_line_.update(progress, Clock::now(), table);
}

Status Engine::wait() {
  auto until = Clock::now() + std::chrono::seconds(15);
  if (status_line_.shown()) until = std::min(until, Clock::now() + std::chrono::seconds(1));
  if (jobs_.count() > 0) until = std::min(until, jobs_.next());
  for (const auto& [pid, id] : by_pid_) {
    if (const auto deadline = tasks_.at(id)->deadline()) until = std::min(until, *deadline);
  }
  const auto now = Clock::now();
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - now);
  ProcessResult result;
  const bool any = processes_.wait_any(
      std::max(left + std::chrono::milliseconds(1), std::chrono::milliseconds(0)), &result);
  if (any) {
    const auto found = by_pid_.find(result.pid);
    if (found != by_pid_.end()) {
      Task& task = *tasks_.at(found->second);
      by_pid_.erase(found);
      if (Status s = task.process_ended(result); !s) return s;
      const bool was_shared = shared_groups_.count(task.id()) != 0;
      if (Status s =
              was_shared && task.state() == State::running ? after_shared(task) : advance(task);
          !s) {
        return s;
      }
    }
  } else {
    journal_.heartbeat();
  }
  const auto after = Clock::now();
  for (const auto& [pid, id] : by_pid_) {
    Task& task = *tasks_.at(id);
    if (task.deadline() && *task.deadline() <= after) task.time_out();
  }
  return take_job_ends();
}

// Ends all children, gently first, and leaves their workpackages to be taken up again.
Status Engine::stop_children() {
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
      processes_.kill_tree(found->first, SIGKILL);  // what did not listen to the gentle signal
      by_pid_.erase(found);
      graph_[id].wp.outcome = in_state(State::pending, Reason::interrupted);
      if (status) status = journal_.set_outcome(id, graph_[id].wp.outcome);
      continue;
    }
    if (!killed && (Clock::now() > patience || processes_.interrupted() > asked)) {
      for (const auto& [pid, id] : by_pid_) processes_.kill_tree(pid, SIGKILL);
      killed = true;
    }
  }
  return status;
}

// In the journal and here.
Status Engine::set_state(int id, State state, Reason reason) {
  graph_[id].wp.outcome = in_state(state, reason);
  return journal_.set_outcome(id, graph_[id].wp.outcome);
}

void Engine::count(RunSummary* summary) const {
  *summary = RunSummary();
  summary->interrupted = interrupted_;
  summary->stopped = options_.exit_on_error && failed_ > failed_before_;
  for (size_t i = 0; i < benchmark_.steps.size(); ++i) {
    for (const int id : graph_.of_step(static_cast<int>(i))) {
      switch (graph_[id].wp.outcome.state) {
        case State::done:
        case State::expected:
          ++summary->done;
          break;
        case State::failed:
          ++summary->failed;
          break;
        case State::lost:
          ++summary->lost;
          break;
        case State::waiting:
          ++summary->waiting;
          break;
        case State::running:
          ++summary->running;
          break;
        case State::pending:
          ++summary->open;
          break;
      }
    }
  }
}

Status execute(const Benchmark& benchmark, Expander& expander, TextPool& pool, Journal& journal,
               const std::string& run_dir, const RunOptions& options, RunSummary* summary) {
  *summary = RunSummary();
  std::unique_ptr<Evaluator> own_evaluator;
  std::unique_ptr<ProcessRunner> own_processes;
  std::unique_ptr<Scheduler> own_scheduler;
  if (options.evaluator == nullptr)
    own_evaluator = make_evaluator(absolute_path("."), options.shell);
  if (options.processes == nullptr) own_processes = make_process_runner();
  if (options.scheduler == nullptr) own_scheduler = make_slurm_scheduler();
  Engine engine(benchmark, expander, pool, journal, run_dir, options,
                options.evaluator != nullptr ? *options.evaluator : *own_evaluator,
                options.processes != nullptr ? *options.processes : *own_processes,
                options.scheduler != nullptr ? *options.scheduler : *own_scheduler);
  return engine.run(summary);
}

}  // namespace tally
