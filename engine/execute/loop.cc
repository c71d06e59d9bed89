#include "engine/execute/loop.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/execute/execute.h"
#include "engine/execute/step_table.h"
#include "engine/run/run_directory.h"

namespace tally {

RunLoop::RunLoop(Run& run, const Settings& settings, const Parts& parts, ProcessRunner& processes,
                 Scheduler& scheduler)
    : settings_(settings),
      processes_(processes),
      run_dir_(run.directory().path),
      log_(run_dir_ + "/run.log", has_secrets(run.benchmark())),
      graph_(run),
      status_line_(parts.output, settings.hide_animation, settings.verbose > 0),
      context_{run,
               graph_,
               processes,
               settings,
               parts,
               current_environment(),
               with_programs(current_environment(), settings.programs),
               absolute_path(run_dir_),
               log_,
               status_line_,
               run_mark(run_dir_, run.journal().run().start),
               boot_mark(),
               has_secrets(run.benchmark())},
      queue_(run.benchmark(), settings.jobs, parts.gpus),
      shared_(graph_, tasks_, queue_, run.benchmark().steps.size()),
      setups_(context_),
      jobs_(context_, scheduler),
      starter_(context_, queue_, tasks_),
      finisher_(context_, queue_, tasks_, shared_, setups_),
      repeat_stop_(context_),
      quiet_check_(context_) {}

Status RunLoop::run(RunSummary* summary) {
  Status status = resume();
  if (status) status = turns();
  if (!status && !by_pid_.empty()) {
    // The journal cannot be written, so the results of running processes could not be recorded.
    const Status stopped = stop_children();
    if (!stopped) log_.write(stopped.message());
  }
  status_line_.finish();
  if (status) status = put_back(jobs_.unsubmitted(), Reason::none);
  const bool all_looked_for = graph_.count(State::waiting) == 0;
  status = leave_gathered(std::move(status));
  sum_up(summary);
  if (status && queue_.is_open() && jobs_.count() == 0 && all_looked_for) {
    for (const SharedOperations::Gathered& group : shared_.gathered()) {
      if (const char* by = queue_.what_holds(group.step); by != nullptr)
        summary->blocked.push_back({group.step, by});
    }
  }
  log_.write("ended: " + std::to_string(summary->done) + " done, " +
             std::to_string(summary->failed) + " failed, " + std::to_string(summary->waiting) +
             " waiting, " + std::to_string(summary->lost) + " lost, " +
             std::to_string(summary->running) + " in the queue, " + std::to_string(summary->open) +
             " not started" + (summary->interrupted ? "; interrupted" : ""));
  if (status) status = context_.run.journal().note_end();
  if (Status s = touch_timestamps(run_dir_); !s && status) status = s;
  return status;
}

// Repeats until nothing runs and nothing can start.
Status RunLoop::turns() {
  for (;;) {
    TRY(start_next());
    TRY(jobs_.submit_packs(by_pid_.empty()));
    if (processes_.interrupted() > answered_) {
      Status s = stop_jobs(&interrupted_);
      answered_ = processes_.interrupted();
      if (interrupted_) queue_.close();
      if (s && interrupted_) s = stop_children();
      if (!s || interrupted_) return s;
    }
    const bool leave = !settings_.wait_for_jobs && jobs_.nothing_to_submit();
    if (by_pid_.empty() && (jobs_.count() == 0 || leave)) {
      Task* task = queue_.is_open() ? shared_.next_complete() : nullptr;
      if (task == nullptr) return Status::ok();
      TRY(run_shared(*task));
      continue;
    }
    show();
    TRY(wait());
  }
}

// Puts the existing workpackages into the queue: all of a new run, or the unfinished ones of a
// resumed run.
Status RunLoop::resume() {
  if (context_.secrets) {
    TRY(context_.run.journal().keep_private());
  }
  bool restored = false;
  TRY(graph_.start(&restored));
  if (restored) {
    TRY(setups_.restore());
  }
  log_.write(restored ? "continued" : "started");
  std::vector<int> created;
  std::vector<Unfinished> left_running;
  const size_t known = graph_.all().size();
  for (size_t i = 0; i < known; ++i) {
    const WorkpackageNode& workpackage = graph_.all()[i];
    const int id = workpackage.wp.id;
    const State state = workpackage.wp.outcome.state;
    if (finisher_.ended_before(id, restored)) {
      if (!restored || !finished_well(state)) continue;
      TRY(graph_.make_children(id, &created));
      continue;
    }
    if (state == State::running && restored && workpackage.job_name.empty())
      left_running.push_back(unfinished(workpackage));
    shared_.opened(workpackage.wp.step);
    queue_.add(id, workpackage.wp.step, graph_.turn_of(workpackage));
  }
  if (!left_running.empty()) {
    TRY(end_earlier_attempts(std::move(left_running)));
  }
  if (created.empty()) return Status::ok();
  TRY(context_.run.journal().transaction([&] { return graph_.record(created); }));
  finisher_.take_created(created);
  return Status::ok();
}

// Ends what a killed engine left running. A process of somebody else that writes to an output file
// keeps the file as it was; the run goes on in a copy.
Status RunLoop::end_earlier_attempts(std::vector<Unfinished> workpackages) {
  std::vector<Journal::Process> processes;
  TRY(context_.run.journal().processes(&processes));
  std::unordered_map<std::string, std::vector<Unfinished::Session>> sessions;
  for (const Journal::Process& process : processes) {
    sessions[workpackage_mark(context_.mark, process.workpackage)].push_back(
        {process.pid, process.start});
  }
  for (Unfinished& workpackage : workpackages) workpackage.sessions = sessions[workpackage.mark];
  std::vector<Foreign> foreign;
  TRY(end_left_behind(workpackages, &foreign));
  for (const Foreign& holder : foreign) {
    const std::string line = "process " + std::to_string(holder.pid) + " (" + holder.command +
                             ") writes to \"" + holder.file +
                             "\", but this run did not start it: it is left alone, and what it "
                             "writes from now on is not in the file";
    log_.write(line);
    status_line_.print("warning: " + line, true);
    TRY(detach_file(holder.file));
  }
  return Status::ok();
}

// Describes the processes that a killed engine may have left of this workpackage.
Unfinished RunLoop::unfinished(const WorkpackageNode& workpackage) const {
  Unfinished left{workpackage_mark(context_.mark, workpackage.wp.id), {}, {}, {}};
  const std::string folder = graph_.folder(workpackage);
  for (const auto& [path, size] : workpackage.outputs) {
    (starts_with(path, context_.run_dir + "/") ? left.outputs : left.outside).push_back(path);
  }
  for (const char* name : {"/stdout", "/stderr", "/work/stdout", "/work/stderr"}) {
    left.outputs.push_back(folder + name);
  }
  return left;
}

// Starts as many as the queue gives. A workpackage that has a task already comes from a shared
// operation.
Status RunLoop::start_next() {
  for (;;) {
    const int id = queue_.next(static_cast<int>(by_pid_.size()));
    if (id < 0) return Status::ok();
    if (const auto known = tasks_.find(id); known != tasks_.end()) {
      TRY(after_shared(*known->second));
      continue;
    }
    bool dropped = false;
    const int step = graph_[id].wp.step;
    TRY(repeat_stop_.decide(id, &dropped));
    if (dropped) {
      shared_.closed(step);
      continue;
    }
    if (repeat_stop_.is_spent()) {
      queue_.close();
      log_.write("begins nothing more: the budget is spent");
      return Status::ok();
    }
    Task* task = nullptr;
    TRY(starter_.start(id, &task));
    if (task == nullptr) continue;
    switch (setups_.decide(*task)) {
      case SetupSharing::Next::work:
        if (task->platform().local()) quiet_check_.started(id, task->step());
        TRY(advance(*task));
        break;
      case SetupSharing::Next::wait:
        queue_.ended(id, task->graph_step());
        tasks_.erase(id);
        break;
      case SetupSharing::Next::ended:
        TRY(finisher_.end(*task));
        break;
    }
  }
}

// Advances a task to its next wait, and passes it to the part that handles the wait.
Status RunLoop::advance(Task& task) {
  Task::Next next{};
  TRY(task.advance(&next));
  switch (next) {
    case Task::Next::process:
      by_pid_[task.pid()] = task.id();
      return Status::ok();
    case Task::Next::shared:
      return shared_.gather(task) ? run_shared(task) : Status::ok();
    case Task::Next::job: {
      bool taken = false;
      TRY(jobs_.submit(task, &taken));
      return taken ? Status::ok() : finisher_.end(task);
    }
    case Task::Next::ended:
      TRY(quiet_check_.ended(task.id()));
      return finisher_.end(task);
  }
  return Status::ok();
}

Status RunLoop::run_shared(Task& task) {
  Task::Next next{};
  TRY(context_.run.journal().begin());
  TRY(task.advance(&next));
  if (next == Task::Next::process) {
    by_pid_[task.pid()] = task.id();
    return context_.run.journal().commit();
  }
  const Outcome* end = task.ended();
  const bool failed =
      end != nullptr && (end->state == State::failed || end->state == State::pending);
  return failed ? finisher_.end(task) : after_shared(task);
}

// Continues after a shared operation: at once for the task that ran it, and through the queue for
// the others. One transaction records it for all: otherwise a resumed run would do it again for
// those that have no record, or wait for ever for those that have one.
Status RunLoop::after_shared(Task& task) {
  TRY(shared_.release(task.id()));
  TRY(context_.run.journal().commit());
  return advance(task);
}

RunLoop::Clock::time_point RunLoop::wait_until() const {
  auto until = Clock::now() + std::chrono::seconds(15);
  if (status_line_.shown()) until = std::min(until, Clock::now() + std::chrono::seconds(1));
  if (jobs_.count() > 0) until = std::min(until, jobs_.next());
  until = std::min(until, quiet_check_.next_look());
  if (const auto due = context_.run.journal().next_snapshot()) until = std::min(until, *due);
  for (const auto& [pid, id] : by_pid_) {
    if (const auto deadline = tasks_.at(id)->deadline()) until = std::min(until, *deadline);
  }
  return until;
}

Status RunLoop::wait() {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(wait_until() - Clock::now());
  ProcessResult result;
  const bool any = processes_.wait_any(
      std::max(left + std::chrono::milliseconds(1), std::chrono::milliseconds(0)), &result);
  if (any) {
    TRY(process_ended(result));
  } else {
    context_.run.journal().heartbeat();
  }
  quiet_check_.look();
  const auto after = Clock::now();
  for (const auto& [pid, id] : by_pid_) {
    Task& task = *tasks_.at(id);
    if (task.deadline() && *task.deadline() <= after) task.time_out();
  }
  return take_job_ends();
}

Status RunLoop::process_ended(const ProcessResult& result) {
  const auto found = by_pid_.find(result.pid);
  if (found == by_pid_.end()) return Status::ok();
  Task& task = *tasks_.at(found->second);
  by_pid_.erase(found);
  const bool shared = shared_.runs(task.id());
  if (shared) {
    TRY(context_.run.journal().begin());
  }
  TRY(task.process_ended(result));
  return shared && task.ended() == nullptr ? after_shared(task) : advance(task);
}

Status RunLoop::take_job_ends() {
  std::vector<JobEnd> ends;
  TRY(jobs_.turn(&ends));
  for (const JobEnd& end : ends) {
    Task& task = *tasks_.at(end.workpackage);
    if (!end.nodes.empty()) {
      JobUse use;
      use.nodes = end.nodes;
      TRY(context_.run.journal().set_job_use(end.workpackage, use));
    }
    const bool again = jobs_.take_end(end, task, queue_.is_open());
    TRY(finisher_.end(task, again));
  }
  tell_of_trouble();
  return Status::ok();
}

// A scheduler that is restarted is silent for a moment. One that is not there would let a person wait
// for `submit_patience` without a word.
void RunLoop::tell_of_trouble() {
  constexpr std::chrono::seconds kMoment(10);
  const std::string& words = jobs_.trouble();
  if (words.empty()) {
    trouble_since_.reset();
    trouble_told_ = false;
    return;
  }
  if (!trouble_since_) trouble_since_ = Clock::now();
  if (trouble_told_ || Clock::now() - *trouble_since_ < kMoment) return;
  trouble_told_ = true;
  status_line_.print("warning: the scheduler does not answer: " +
                         words.substr(0, words.find('\n')) + "; trying again",
                     true);
}

void RunLoop::show() {
  if (!status_line_.due()) return;
  RunProgress progress;
  progress.total = static_cast<int>(graph_.all().size()) - repeat_stop_.dropped();
  progress.done = graph_.count(State::done) + graph_.count(State::expected);
  progress.failed = graph_.count(State::failed);
  progress.lost = graph_.count(State::lost);
  progress.waiting = graph_.count(State::waiting);
  progress.running = static_cast<int>(by_pid_.size());
  progress.jobs = static_cast<int>(jobs_.count());
  if (const int last = starter_.last(); last >= 0 && graph_.has(last))
    progress.current = graph_[last].directory;
  std::vector<std::string> table;
  // A job's state, and why it waits, are in the table alone.
  const bool tells_more = progress.total > 1 || progress.jobs > 0;
  if (tells_more && !status_line_.is_small()) table = table_of_steps();
  status_line_.update(progress, Clock::now(), table);
}

// A bar for each step, and below what runs where that is more than one workpackage.
std::vector<std::string> RunLoop::table_of_steps() {
  const size_t rows = status_line_.table_rows();
  std::vector<std::string> table =
      step_lines(step_table_.progress(graph_, context_.run.benchmark().steps, Clock::now()),
                 std::max<size_t>(rows / 2, 1), status_line_.table_columns());
  if (jobs_.count() == 0 && by_pid_.size() < 2) return table;
  if (rows < table.size() + 4) return table;
  const std::vector<std::string> running =
      running_table(context_, jobs_.views(), by_pid_, rows - table.size() - 1);
  table.emplace_back();
  table.insert(table.end(), running.begin(), running.end());
  return table;
}

// Tasks that wait at a shared operation are left for `continue`.
Status RunLoop::leave_gathered(Status status) {
  for (const SharedOperations::Gathered& group : shared_.gathered()) {
    for (const int id : group.workpackages) {
      const Status set = graph_.transition(id, in_state(State::waiting, Reason::before_shared));
      if (status) status = set;
    }
  }
  return status;
}

// A workpackage that is not in a scheduler's queue counts as not started.
Status RunLoop::put_back(const std::vector<int>& workpackages, Reason reason) {
  for (const int id : workpackages) {
    TRY(graph_.transition(id, in_state(State::pending, reason)));
  }
  return Status::ok();
}

void RunLoop::sum_up(RunSummary* summary) const {
  *summary = RunSummary();
  summary->interrupted = interrupted_;
  summary->stopped = settings_.exit_on_error && finisher_.failed_now();
  summary->done = graph_.count(State::done) + graph_.count(State::expected);
  summary->failed = graph_.count(State::failed);
  summary->lost = graph_.count(State::lost);
  summary->waiting = graph_.count(State::waiting);
  summary->running = graph_.count(State::running);
  summary->open = graph_.count(State::pending);
}

Status execute(Run& run, const Settings& settings, const Parts& parts, RunSummary* summary) {
  *summary = RunSummary();
  std::unique_ptr<ProcessRunner> own_processes;
  std::unique_ptr<Scheduler> own_scheduler;
  if (parts.processes == nullptr) own_processes = make_process_runner();
  if (parts.scheduler == nullptr) {
    TRY(scheduler_of(run.journal(), &own_scheduler));
  }
  RunLoop loop(run, settings, parts, parts.processes != nullptr ? *parts.processes : *own_processes,
               parts.scheduler != nullptr ? *parts.scheduler : *own_scheduler);
  return loop.run(summary);
}

}  // namespace tally
