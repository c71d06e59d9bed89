#include "engine/execute/execute.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <unordered_map>

#include "engine/base/text.h"
#include "engine/execute/graph.h"
#include "engine/execute/jobs.h"
#include "engine/execute/run_directory.h"
#include "engine/execute/run_log.h"
#include "engine/execute/slots.h"
#include "engine/execute/status_line.h"
#include "engine/execute/store.h"
#include "engine/execute/task.h"
#include "engine/execute/work_directory.h"

namespace tally {
namespace {

using Clock = std::chrono::steady_clock;

RunInfo run_info(const RunRecord& record, const std::string& run_dir) {
  return {record.id, record.benchmark, record.home, run_dir, record.start};
}

// The loop over a run's workpackages. Holds what one call of execute() needs; nothing outlives it.
class Engine {
 public:
  Engine(const Benchmark& benchmark, Expander& expander, TextPool& pool, Journal& journal,
         const std::string& run_dir, const RunOptions& options, Evaluator& evaluator,
         ProcessRunner& processes, Scheduler& scheduler)
      : benchmark_(benchmark),
        journal_(journal),
        options_(options),
        processes_(processes),
        log_(run_dir + "/run.log"),
        graph_(benchmark, expander, pool, evaluator, journal, run_info(journal.run(), run_dir)),
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
                 absolute_path(run_dir),
                 log_},
        status_line_(nullptr, options.hide_animation, options.verbose),
        run_dir_(run_dir),
        store_(absolute_path(run_dir + "/..")),
        open_of_step_(benchmark.steps.size(), 0) {}

  Status run(RunSummary* summary);

 private:
  Status take_up();
  Status fill_slots();
  Status start(int id);
  Status go_on(Task& task);
  Status ended(Task& task);
  Status ended_well(Task& task);
  Status ended_badly(Task& task);
  Status mark_failed_at_birth(const std::vector<int>& created);
  Status wait();
  Status submit(Task& task);
  Status take_job_ends();
  Status job_ended(const JobEnd& end);
  Status gather_shared(Task& task);
  Status run_shared(const std::vector<int>& group);
  Status release_complete_groups();
  Status after_shared(Task& task);
  Status share_setup(Task& task, bool* taken);
  bool take_over(Task& task, const StepInputs& inputs, const std::string& hash);
  bool link_to_work(Task& task, const std::string& work, const std::string& of);
  void keep_setup(int id);
  Status release_setup(int id, bool well);
  Status stop_children();
  void mark(int id, const char* name, const std::string& text);
  void report_end(const Task& task);
  void show();
  void count(RunSummary* summary) const;
  bool may_start() const { return !interrupted_ && !(options_.exit_on_error && failed_ > 0); }
  std::string job_name(int id) const;
  std::string status_file(const Task& task) const;

  const Benchmark& benchmark_;
  Journal& journal_;
  const RunOptions& options_;
  ProcessRunner& processes_;
  RunLog log_;
  PackageGraph graph_;
  JobFollower jobs_;
  Slots slots_;
  TaskContext context_;
  StatusLine status_line_;
  std::string run_dir_;
  WorkStore store_;  // setup and build work of earlier runs

  std::unordered_map<int, std::unique_ptr<Task>> tasks_;  // by package
  std::unordered_map<int, int> by_pid_;                   // package
  // Packages that stand before a shared operation, by step, cycle and operation.
  std::map<std::pair<int, std::pair<int, int>>, std::vector<int>> gathered_;
  std::map<int, std::vector<int>> shared_groups_;  // by the package that runs the operation
  std::map<std::string, int> setups_;              // content hash -> package that does the work
  std::map<int, std::string> setup_of_;            // package -> content hash
  std::map<int, StepInputs> made_from_;            // of setup work that is done here
  std::map<std::string, std::vector<int>> setup_waiters_;
  std::vector<int> open_of_step_;  // packages not ended
  int done_ = 0, failed_ = 0, waiting_ = 0, lost_ = 0;
  int last_started_ = -1;
  bool interrupted_ = false;
};

Status Engine::run(RunSummary* summary) {
  Status status = take_up();
  while (status) {
    status = fill_slots();
    if (!status) break;
    if (interrupted_ || processes_.interrupted() > 0) {
      interrupted_ = true;
      status = stop_children();
      break;
    }
    if (by_pid_.empty() && (jobs_.count() == 0 || !options_.wait_for_jobs)) {
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
  // Packages that stand before a shared operation are taken up again where they are.
  for (const auto& [key, group] : gathered_) {
    for (const int id : group) {
      if (status) status = journal_.set_state(id, State::pending, "");
      graph_[id].wp.state = State::pending;
    }
  }
  count(summary);
  log_.write("ended: " + std::to_string(summary->done) + " done, " +
             std::to_string(summary->failed) + " failed, " + std::to_string(summary->waiting) +
             " waiting, " + std::to_string(summary->lost) + " lost, " +
             std::to_string(summary->running) + " in the queue, " + std::to_string(summary->open) +
             " not started" + (summary->interrupted ? "; interrupted" : ""));
  if (Status s = touch_timestamps(run_dir_); !s && status) status = s;
  return status;
}

// The packages there are, into the queue: all of a new run, what is left of a continued one.
Status Engine::take_up() {
  bool restored = false;
  if (Status s = graph_.start(&restored); !s) return s;
  log_.write(restored ? "continued" : "started");
  std::vector<int> created;
  bool left_running = false;
  const size_t known = graph_.all().size();
  for (size_t i = 0; i < known; ++i) {
    Package& package = graph_.all()[i];
    const int id = package.wp.id;
    switch (package.wp.state) {
      case State::done:
      case State::expected:
        ++done_;
        // The marks are effects of the journal's states; a kill may have come between.
        if (restored && !path_exists(graph_.folder(package) + "/done"))
          mark(id, "done", time_stamp());
        if (restored) {
          if (Status s = graph_.make_children(id, &created); !s) return s;
        }
        break;
      case State::failed:
        ++failed_;
        mark(id, "error", package.wp.note);
        break;
      case State::lost:
        ++lost_;
        break;
      case State::running:
        left_running = left_running || package.job_name.empty();
        [[fallthrough]];
      default:
        ++open_of_step_[static_cast<size_t>(package.wp.step)];
        slots_.queue(id, package.wp.step, package.wp.repetition);
    }
  }
  if (restored && left_running) end_left_behind(run_dir_);
  if (created.empty()) return Status::ok();
  if (Status s = journal_.begin(); !s) return s;
  if (Status s = graph_.record(created); !s) return s;
  if (Status s = journal_.commit(); !s) return s;
  return mark_failed_at_birth(created);
}

// New packages into the queue; those that could not even get their parameters are failures at once.
Status Engine::mark_failed_at_birth(const std::vector<int>& created) {
  for (const int id : created) {
    const Package& package = graph_[id];
    if (package.wp.state == State::failed) {
      ++failed_;
      mark(id, "error", package.wp.note);
      log_.write(package.directory + ": " + package.wp.note);
    } else {
      ++open_of_step_[static_cast<size_t>(package.wp.step)];
      slots_.queue(id, package.wp.step, package.wp.repetition);
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
  Package& package = graph_[id];
  // Made before the state changes: it looks at the one before.
  auto task = std::make_unique<Task>(context_, id);
  Task& t = *task;
  const int gpus =
      static_cast<int>(strtol(t.values().apply(t.step().gpu_slots).c_str(), nullptr, 10));
  const bool local_gpus = gpus > 0 && t.platform().local();
  const auto granted =
      local_gpus ? slots_.take_gpus(id, package.wp.step, gpus) : Slots::Gpus::taken;
  if (granted == Slots::Gpus::later) return Status::ok();
  if (package.wp.state != State::waiting) {
    if (Status s = journal_.set_state(id, State::running, ""); !s) return s;
  }
  package.wp.state = State::running;
  last_started_ = id;
  tasks_[id] = std::move(task);
  t.prepare_folder();
  slots_.started(id, package.wp.step);
  if (granted == Slots::Gpus::never) {
    t.fail("needs " + std::to_string(gpus) + " GPU slots, this machine has " +
           std::to_string(slots_.gpu_count()));
  } else if (local_gpus) {
    t.set_gpus(slots_.gpus_of(id));
  }
  if (t.state() == State::running &&
      (t.step().kind == StepKind::setup || t.step().kind == StepKind::build)) {
    bool taken = false;
    if (Status s = share_setup(t, &taken); !s || taken) return s;
  }
  return go_on(t);
}

Status Engine::go_on(Task& task) {
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
  report_end(task);
  const bool again = graph_[id].wp.state == State::pending;
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
    waiting.fail("shared operation failed in workpackage " + std::to_string(id));
    if (Status s = ended(waiting); !s) return s;
  }
  if (setup_of_.count(id) != 0) return release_setup(id, finished_well(state));
  return Status::ok();
}

// The end, its children and what it leaves to them are recorded together, before anything shows it.
Status Engine::ended_well(Task& task) {
  const int id = task.id();
  Package& package = graph_[id];
  package.wp.state = task.state();
  package.wp.note = task.note();
  if (task.step().exported) {
    package.environment = std::make_unique<EnvironmentChanges>(task.environment());
  } else {
    package.environment.reset();
  }
  std::vector<int> created;
  Status children = graph_.make_children(id, &created);
  if (Status s = journal_.begin(); !s) return s;
  if (task.step().exported) {
    if (Status s = journal_.operation_done(id, package.wp.cycle, package.operations_done - 1,
                                           pack_changes(task.environment()), {});
        !s) {
      return s;
    }
  }
  if (const auto hash = setup_of_.find(id);
      hash != setup_of_.end() && setups_[hash->second] == id) {
    if (Status s = journal_.set_shared(hash->second, std::to_string(id)); !s) return s;
  }
  if (Status s = journal_.set_state(id, task.state(), task.note()); !s) return s;
  if (Status s = graph_.record(created); !s) return s;
  if (Status s = journal_.commit(); !s) return s;
  ++done_;
  mark(id, "done", time_stamp());
  keep_setup(id);
  if (!children) return children;
  return mark_failed_at_birth(created);
}

Status Engine::ended_badly(Task& task) {
  const int id = task.id();
  Package& package = graph_[id];
  const State state = task.state();
  const int retries =
      static_cast<int>(strtol(task.values().apply(task.step().retry).c_str(), nullptr, 10));
  if (state == State::failed && package.attempts < retries && may_start()) {
    ++package.attempts;
    log_.write(package.directory + ": " + task.note() + "\ntrying again, " +
               std::to_string(package.attempts) + " of " + std::to_string(retries));
    // The failed try's files stay for people to look at.
    const std::string work = graph_.folder(package) + "/work";
    const std::string kept = work + ".failed." + std::to_string(package.attempts);
    [[maybe_unused]] const int moved = rename(work.c_str(), kept.c_str());
    package.wp.state = State::pending;
    package.wp.cycle = 0;
    package.operations_done = 0;
    package.prepared = false;
    package.environment.reset();
    package.outputs.clear();
    package.job_name.clear();
    package.job_id.clear();
    slots_.queue(id, package.wp.step);
    return journal_.reset(id);
  }
  package.wp.state = state;
  package.wp.note = task.note();
  if (Status s = journal_.set_state(id, state, task.note()); !s) return s;
  if (state == State::failed) {
    ++failed_;
    mark(id, "error", task.note());
  } else if (state == State::lost) {
    ++lost_;
    mark(id, "error", task.note());
  } else {
    ++waiting_;
    slots_.keep_waiting(package.wp.step);
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
  const Package& package = graph_[task.id()];
  const char* word = "done";
  if (task.state() == State::failed) word = "failed";
  if (task.state() == State::waiting) word = "waiting";
  if (task.state() == State::lost) word = "lost";
  std::string line = package.directory + ": " + word;
  if (!task.note().empty()) line += ": " + task.note();
  if (task.state() != State::done || options_.verbose) log_.write(line);
  status_line_.print(line, false);
}

void Engine::show() {
  if (!status_line_.shown()) return;
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
  status_line_.update(progress);
}

Status Engine::wait() {
  auto until = Clock::now() + std::chrono::seconds(15);
  if (status_line_.shown()) until = std::min(until, Clock::now() + std::chrono::seconds(1));
  if (jobs_.count() > 0) until = std::min(until, jobs_.next_poll());
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
              was_shared && task.state() == State::running ? after_shared(task) : go_on(task);
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

// --- jobs
// --------------------------------------------------------------------------------------------

// Unique to run and workpackage, and the same each time: a job can be found again by it.
std::string Engine::job_name(int id) const {
  std::string digest = content_hash({absolute_path(run_dir_) + journal_.run().start, {}, {}, {}});
  return "tally-" + padded_id(journal_.run().id) + "-" + padded_id(id) + "-" + digest.substr(0, 8);
}

std::string Engine::status_file(const Task& task) const {
  const std::string* name = task.values().find("status_file");
  return absolute_path(name != nullptr && !name->empty() ? *name : "job.status", task.work_dir());
}

Status Engine::submit(Task& task) {
  const int id = task.id();
  Package& package = graph_[id];
  if (!package.job_name.empty()) {
    bool found = false;
    if (Status s = jobs_.adopt(id, package.job_name, package.job_id, status_file(task), &found);
        !s) {
      return s;
    }
    if (found) return Status::ok();
  }
  if (task.platform().submit.empty() || task.platform().submit_script.empty()) {
    task.fail("platform '" + task.platform().scheduler +
              "' needs the parameters submit and submit_script (its executeset)");
    return ended(task);
  }
  JobRequest request;
  request.name = job_name(id);
  request.directory = task.work_dir();
  request.script = task.platform().submit_script;
  request.submit = task.platform().submit;
  request.environment = task.process_environment(task.work_dir());
  package.job_name = request.name;
  std::string rejected;
  if (Status s = jobs_.submit(id, request, status_file(task), &rejected); !s) return s;
  if (rejected.empty()) return Status::ok();
  task.fail(rejected);
  return ended(task);
}

Status Engine::take_job_ends() {
  for (const JobEnd& end : jobs_.poll()) {
    if (Status s = job_ended(end); !s) return s;
  }
  return Status::ok();
}

Status Engine::job_ended(const JobEnd& end) {
  Task& task = *tasks_.at(end.package);
  if (!end.known) {
    task.end(State::lost, "the scheduler no longer knows the job and it left no exit status" +
                              (end.reason.empty() ? std::string() : " (" + end.reason + ")"));
  } else if (end.exit_code == 0) {
    task.end(State::done, {});
  } else {
    std::string outcome = outcome_of(end.exit_code);
    if (end.exit_code < 0 && end.reason.rfind("TIMEOUT", 0) == 0) outcome = "timeout";
    if (end.exit_code < 0 && end.reason.rfind("OUT_OF_MEMORY", 0) == 0) outcome = "oom";
    if (is_expected(task.step(), outcome, task.values().lookup())) {
      task.end(State::expected, outcome == "oom"       ? "out of memory"
                                : outcome == "timeout" ? "time limit"
                                                       : "check failed");
    } else if (end.exit_code < 0) {
      task.fail("the job ended without an exit status: " + end.reason);
    } else {
      task.fail("the job's program ended with exit code " + std::to_string(end.exit_code) +
                "; its output is in \"" + task.work_dir() + "\"");
    }
  }
  return ended(task);
}

// --- the end
// -----------------------------------------------------------------------------------------

// Ends all children, gently first, and leaves their packages to be taken up again.
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
      if (status) status = journal_.set_state(id, State::pending, "interrupted");
      graph_[id].wp.state = State::pending;
      continue;
    }
    if (!killed && (Clock::now() > patience || processes_.interrupted() > asked)) {
      for (const auto& [pid, id] : by_pid_) processes_.kill_tree(pid, SIGKILL);
      killed = true;
    }
  }
  return status;
}

void Engine::count(RunSummary* summary) const {
  *summary = RunSummary();
  summary->interrupted = interrupted_;
  for (size_t i = 0; i < benchmark_.steps.size(); ++i) {
    for (const int id : graph_.of_step(static_cast<int>(i))) {
      switch (graph_[id].wp.state) {
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

}  // namespace

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
