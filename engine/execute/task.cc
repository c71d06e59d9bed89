#include "engine/execute/task.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "engine/base/duration.h"
#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/workspace/left_behind.h"
#include "engine/workspace/setup_inputs.h"
#include "engine/workspace/work_directory.h"

namespace tally {

Task::Task(RunContext& context, int id)
    : context_(context), id_(id), step_(context.graph.step_of(context.graph[id])) {
  values_ = std::make_unique<WorkpackageValues>(context.graph.values(workpackage()));
  folder_ = context.graph.folder(workpackage());
  work_dir_ = context.graph.work_dir(workpackage());
  output_dir_ = step_.kind == StepKind::run ? folder_ + "/work" : work_dir_;
  sets_ = used_sets(step_, values_->lookup());
  operations_ = step_.operations;
  platform_ = step_.kinds->platform_of(step_, values_->lookup());
  if (!step_.kinds->local_launch(step_, values_->lookup()).command.empty()) {
    Operation operation;
    // The text is final. The platform's starter is already substituted in the launch line.
    operation.command = step_.launch;
    operations_.push_back(std::move(operation));
  }
  operation_ = static_cast<size_t>(workpackage().operations_done);
  if (workpackage().prepared) phase_ = Phase::operations;
  place_ = workpackage().job_name.empty() ? step_.name.mark : step_.launch.mark;
  const Outcome& before = workpackage().wp.outcome;
  check_waiting_ = before.state == State::waiting && before.reason != Reason::before_shared;
  for (const auto& [path, size] : workpackage().outputs) {
    if (!contains(outputs_, path)) {
      outputs_.push_back(path);
      // The first of two sizes is the one from before; so is the only one before any operation.
      const bool in_work_dir = starts_with(path, work_dir_ + "/");
      if (in_work_dir && !starts_with(path, folder_ + "/")) before_.emplace_back(path, size);
    }
  }
}

int Task::cycle() const {
  return workpackage().wp.cycle;
}

void Task::end(Outcome outcome) {
  const auto failed = context_.failed_attempts.find(id_);
  const bool put_off = outcome.state == State::pending && outcome.reason == Reason::host;
  if (put_off && failed != context_.failed_attempts.end())
    outcome.detail = outcome.detail.str() + "; the attempt before failed: " + failed->second.why;
  if (!finished_well(outcome.state) && !outcome.place.known()) outcome.place = place_;
  end_ = std::move(outcome);
  phase_ = Phase::finished;
}

void Task::fail(Reason reason, std::string detail) {
  end(failure(reason, std::move(detail)));
}

void Task::fail(Reason reason, const Status& status) {
  if (!may_pass(status, context_.run_dir)) return fail(reason, status.message());
  put_off(status);
}

void Task::put_off(const Status& why) {
  Outcome outcome = in_state(State::pending, Reason::host);
  outcome.detail = why.message();
  end(std::move(outcome));
}

// The name may come from a parameter, as in JUBE's platform files.
std::string Task::shared_folder() const {
  return context_.run_dir + "/" + step_.name.value + "_" + values_->apply(step_.shared);
}

void Task::prepare_folder() {
  const std::string cycles = values_->apply(step_.cycles);
  cycles_ = std::max(1, static_cast<int>(strtol(cycles.c_str(), nullptr, 10)));
  const std::string own_work = folder_ + "/work";
  // Usually both folders are new, so they are made without a check: outer first, then inner.
  if (mkdir(folder_.c_str(), 0777) != 0 || mkdir(own_work.c_str(), 0777) != 0) {
    // A set-up that is reused has a link there. An engine killed before it recorded that left it.
    struct stat info {};
    if (reuses_work(step_.kind) && lstat(own_work.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
      if (Status s = remove_own(context_.run_dir, own_work); !s) return fail(Reason::directory, s);
    }
    if (Status s = make_own_directories(context_.run_dir, own_work); !s) {
      return fail(Reason::directory, s);
    }
  }
  if (work_dir_ != own_work) {
    if (Status s = make_directories(work_dir_); !s) return fail(Reason::directory, s);
  }
  unlink((folder_ + "/error").c_str());
  unlink((folder_ + "/.environment").c_str());  // of a killed engine; it may hold secrets
  if (!step_.shared.empty()) {
    const std::string shared = shared_folder();
    if (Status s = make_own_directories(context_.run_dir, shared); !s)
      return fail(Reason::directory, s);
    // A work_dir that the user chose gets no links, as in JUBE.
    const std::string link = own_work + "/" + values_->apply(step_.shared);
    if (Status s = make_link(shared, link); !s) return fail(Reason::directory, s);
  }
  for (const int parent : workpackage().wp.parents) {
    const WorkpackageNode& other = context_.graph[parent];
    const std::string target = context_.graph.folder(other) + "/work";
    const std::string name = context_.graph.step_of(other).name.value;
    if (Status s = make_link(target, own_work + "/" + name); !s) return fail(Reason::directory, s);
  }
  // The outputs stay if they belong to a job, which may be running.
  if (!check_waiting_ && workpackage().job_name.empty()) {
    if (Status s = cut_back_outputs(); !s) return fail(Reason::directory, s);
  }
  // The faults of a job are said when it is submitted.
  for (const JobFault& fault : step_.kinds->job_faults(step_, values_->lookup())) {
    if (platform_.local() && !fault.constant) return fail(Reason::value, fault.message);
  }
  start_environment();
  const std::string timeout = values_->apply(step_.timeout);
  if (!strip(timeout).empty()) {
    const auto seconds = parse_duration(timeout);
    if (!seconds) {
      return fail(Reason::value, "timeout \"" + timeout +
                                     "\" is not a duration; write it as 90s, 10m or 01:30:00");
    }
    timeout_text_ = timeout;
    deadline_ = Clock::now() + std::chrono::milliseconds(static_cast<long long>(*seconds * 1000));
  }
}

void Task::start_environment() {
  if (workpackage().environment) {
    environment_ = *workpackage().environment;
    return;
  }
  environment_ = inherited();
  for (auto& [name, value] : declared(environment_)) environment_[name] = value;
}

EnvironmentChanges Task::inherited() const {
  EnvironmentChanges changes;
  for (const int parent : workpackage().wp.parents) {
    const WorkpackageNode& other = context_.graph[parent];
    if (!context_.graph.step_of(other).exported || !other.environment) continue;
    for (const auto& [name, value] : *other.environment) changes[name] = value;
  }
  if (!gpus_.empty()) changes["CUDA_VISIBLE_DEVICES"] = gpus_;
  return changes;
}

EnvironmentChanges Task::declared(const EnvironmentChanges& inherited) const {
  if (step_.env.empty()) return declared_environment(step_, *values_, base());
  Environment before = with_changes(base(), inherited);
  before["PWD"] = work_dir_;
  return declared_environment(step_, *values_, before);
}

void Task::set_gpus(const std::vector<std::string>& gpus) {
  gpus_ = join(gpus, ",");
  start_environment();
  environment_["CUDA_VISIBLE_DEVICES"] = gpus_;
}

EnvironmentChanges Task::environment_for_script() const {
  EnvironmentChanges changes = environment_;
  if (step_.env.empty()) return changes;
  // `read` has the variables that others are set from, `from_others` those that are set from
  // another. A script that had them already would set them, or others, from the new values.
  std::set<std::string> read, from_others;
  for (const auto& [name, text] : step_.env) {
    const auto names = variables_in(substitute_parameters(text.value, values_->lookup()));
    if (!names.empty()) from_others.insert(values_->apply(name));
    read.insert(names.begin(), names.end());
  }
  for (const char* of_site : {"site_interconnect_variables", "site_variables"}) {
    const std::string* packed = job_value(values_->lookup(), of_site);
    if (packed == nullptr) continue;
    for (const auto& [name, text] : unpack_variables(*packed)) read.merge(variables_in(text));
  }
  EnvironmentChanges before = inherited();
  const EnvironmentChanges own = declared(before);
  for (const auto& [name, value] : values_->exported()) before[name] = value;
  for (const auto& [name_text, text] : step_.env) {
    const std::string name = values_->apply(name_text);
    if (read.count(name) == 0 && from_others.count(name) == 0) continue;
    // A command of the step may have set it since. The script goes on from there.
    if (const auto now = changes.find(name); now == changes.end() || now->second != own.at(name))
      continue;
    changes.erase(name);
    if (const auto found = before.find(name); found != before.end()) changes.insert(*found);
  }
  return changes;
}

EnvironmentChanges Task::environment_beside_env() const {
  EnvironmentChanges changes = environment_for_script();
  for (const auto& [name, value] : declared(inherited())) {
    const auto now = changes.find(name);
    if (now != changes.end() && now->second == value) changes.erase(now);
  }
  return changes;
}

std::vector<std::string> Task::secrets() const {
  return with_secrets(*values_, with_changes(base(), environment_));
}

const Environment& Task::base() const {
  return step_.kind == StepKind::plain ? context_.base : context_.own_base;
}

std::vector<std::string> Task::process_environment(const std::string& directory) const {
  Environment environment =
      with_changes(base(), running_.sets_env ? environment_for_script() : environment_);
  environment["PWD"] = directory;
  environment[process_mark] = workpackage_mark(context_.mark, id_);
  return entries(environment);
}

Status Task::advance(Next* next) {
  *next = Next::ended;
  Status status = note_outputs_before();
  if (status && phase_ != Phase::finished) status = note_outside_files();
  if (status && phase_ != Phase::finished && begun_ns_ == 0) {
    if (Status s = note_begin(); !s) fail(Reason::files, s);
  }
  if (!status) return status;
  for (;;) {
    switch (phase_) {
      case Phase::files:
        if (advance_files()) {
          *next = Next::process;
          return Status::ok();
        }
        if (phase_ == Phase::operations && anything_prepared_) {
          workpackage().prepared = true;
          TRY(record_progress());
        }
        break;
      case Phase::operations:
        if (advance_operations(next, &status) || !status) return status;
        break;
      case Phase::finished:
        return Status::ok();
    }
  }
}

bool Task::is_active(const Text& active, bool* active_now) {
  if (active.value == "true") {
    *active_now = true;
    return true;
  }
  if (Status s = evaluate_active(values_->apply(active), context_.run.evaluator(), active_now);
      !s) {
    fail(Reason::value, s.message());
    return false;
  }
  return true;
}

// The variables in the environment of the workpackage's commands so far.
Variables Task::variables() const {
  return [this](const std::string& name) -> std::optional<std::string> {
    if (const auto own = environment_.find(name); own != environment_.end()) return own->second;
    const auto base = context_.base.find(name);
    return base != context_.base.end() ? std::optional<std::string>(base->second) : std::nullopt;
  };
}

// A file that lies in a work_dir of the user's choice may be of an earlier run or of another
// workpackage, with other content. The first of two entries for one name counts, as in JUBE.
Status Task::put(const PlannedFile& file) {
  const std::string target = absolute_path(file.target, work_dir_);
  const bool again = !placed_.insert(target).second;
  if (!guards_outside_files() || again || starts_with(target, folder_ + "/"))
    return place_file(file, work_dir_, Existing::keep);
  const auto failed = context_.failed_attempts.find(id_);
  const bool own =
      failed != context_.failed_attempts.end() && failed->second.placed.count(target) != 0;
  return place_file(file, work_dir_, own ? Existing::own : Existing::must_be_same);
}

bool Task::advance_files() {
  const bool begins = set_ == 0 && entry_ == 0 && cycle() == 0;
  if (begins && appends_to_earlier_file(Outputs::named_outside)) return false;
  for (; set_ < sets_.size(); ++set_, entry_ = 0) {
    const auto found = context_.run.benchmark().file_sets.find(sets_[set_]);
    if (found == context_.run.benchmark().file_sets.end()) continue;
    const auto& all = found->second.entries;
    while (entry_ < all.size()) {
      const auto& entry = all[entry_++];
      anything_prepared_ = true;
      if (const auto* prepare = std::get_if<Prepare>(&entry)) {
        if (Status looked = look_before_prepare(); !looked) {
          fail(Reason::files, looked);
          return false;
        }
        if (run_prepare(*prepare)) return true;
      } else {
        const auto& copy = std::get<FileCopy>(entry);
        bool active = true;
        if (!is_active(copy.active, &active)) return false;
        if (!active) continue;
        std::vector<PlannedFile> files;
        if (Status s = list_files(copy, values_->lookup(), work_dir_, &files, variables()); !s) {
          fail(Reason::files, s);
        }
        for (const PlannedFile& file : files) {
          if (phase_ == Phase::finished) break;
          if (Status s = put(file); !s) fail(Reason::files, s);
        }
      }
      if (phase_ == Phase::finished) return false;
    }
  }
  if (cycle() == 0 && appends_to_earlier_file(Outputs::led_outside)) return false;
  if (Status s = make_substituted_files(); !s) {
    fail(Reason::files, s);
    return false;
  }
  phase_ = Phase::operations;
  return false;
}

Status Task::make_substituted_files() {
  const auto sets = substitute_sets(context_.run.benchmark(), sets_);
  if (sets.empty()) return Status::ok();
  std::vector<FileBytes> made;
  TRY(substitute_files(sets, values_->lookup(), context_.run.evaluator(), read_from(work_dir_),
                       &made));
  keep_secrets(secrets(), &made);
  anything_prepared_ = anything_prepared_ || !made.empty();
  return write_substituted(made, work_dir_);
}

bool Task::advance_operations(Next* next, Status* status) {
  if (finds_marks_before_commands()) return false;
  if (operation_ >= operations_.size() || stop_operations_) {
    if (!stop_operations_ && next_cycle(status)) return false;
    if (phase_ == Phase::finished || !*status) return false;
    if (!platform_.local()) {
      place_ = step_.launch.mark;
      *next = Next::job;
      return true;
    }
    end(in_state(State::done));
    return false;
  }
  const Operation& operation = operations_[operation_];
  place_ = operation.command.mark;
  bool active = true;
  if (!is_active(operation.active, &active)) return false;
  if (!active) {
    ++operation_;
    return false;
  }
  if (check_waiting_) {
    // The state and its basis change in one transaction. Otherwise a killed engine could mistake an
    // operation that started after the wait for one that waits.
    check_waiting_ = false;
    *status = context_.run.journal().begin();
    if (*status) *status = operation_ended(operation);
    if (*status && ended() == nullptr) {
      *status = context_.graph.transition(id_, in_state(State::running));
    }
    if (*status) *status = context_.run.journal().commit();
    return false;
  }
  if (operation.shared && !shared_now_) {
    *next = Next::shared;
    return true;
  }
  if (operation.shared) values_->drop_workpackage_builtins();
  if (run_operation(operation)) {
    *next = Next::process;
    return true;
  }
  if (phase_ != Phase::finished) *status = operation_ended(operation);
  return false;
}

bool Task::next_cycle(Status* status) {
  WorkpackageNode& p = workpackage();
  if (p.wp.cycle + 1 >= cycles_) return false;
  ++p.wp.cycle;
  operation_ = 0;
  values_ = std::make_unique<WorkpackageValues>(context_.graph.values(p));
  const std::string error = context_.run.expander().update(step_, p.wp.point, values_->builtins());
  if (!error.empty()) {
    fail(Reason::value, error);
    return false;
  }
  values_ = std::make_unique<WorkpackageValues>(context_.graph.values(p));
  *status = context_.run.journal().set_parameters(p.wp, context_.run.texts(),
                                                  context_.graph.definitions(p));
  if (*status) *status = record_operation();
  return static_cast<bool>(*status);
}

}  // namespace tally
