#include "engine/execute/task.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "engine/base/text.h"
#include "engine/execute/run_directory.h"
#include "engine/execute/work_directory.h"

namespace tally {
namespace {

// A command as JUBE passes it on: white space and semicolons off both ends.
std::string trimmed_command(const std::string& text) {
  std::string_view command = strip(text);
  while (!command.empty() && command.front() == ';') command = strip(command.substr(1));
  while (!command.empty() && command.back() == ';') {
    // `;;` ends a case branch, and a backslash makes the semicolon a word.
    if (command.size() > 1 && command[command.size() - 2] == '\\') break;
    command = strip(command.substr(0, command.size() - 1));
  }
  return std::string(command);
}

const char* plain_words(const std::string& outcome) {
  if (outcome == "oom") return "out of memory";
  if (outcome == "timeout") return "time limit";
  if (outcome == "check") return "check failed";
  return "";
}

}  // namespace

Task::Task(TaskContext& context, int id)
    : context_(context), id_(id), step_(context.graph.step_of(context.graph[id])) {
  values_ = std::make_unique<PackageValues>(context.graph.values(package()));
  folder_ = absolute_path(context.graph.folder(package()));
  work_dir_ = absolute_path(context.graph.work_dir(package()));
  sets_ = used_sets(step_, values_->lookup());
  operations_ = step_.operations;
  platform_ = platform_of(step_, values_->lookup());
  if (std::string launch = local_launch(step_, values_->lookup()); !launch.empty()) {
    Operation operation;
    // The text is final: the launch line was substituted with the platform's starter.
    operation.command = step_.launch;
    operations_.push_back(std::move(operation));
  }
  operation_ = static_cast<size_t>(package().operations_done);
  if (package().prepared) phase_ = Phase::operations;
  check_waiting_ = package().wp.state == State::waiting;
}

int Task::cycle() const {
  return package().wp.cycle;
}

void Task::end(State state, std::string note) {
  state_ = state;
  note_ = std::move(note);
  phase_ = Phase::finished;
}

void Task::fail(std::string note) {
  end(State::failed, std::move(note));
}

// The name may come from a parameter: JUBE's platform files have one for it.
std::string Task::shared_folder() const {
  return context_.run_dir + "/" + step_.name.value + "_" + values_->apply(step_.shared);
}

void Task::prepare_folder() {
  const std::string cycles = values_->apply(step_.cycles);
  cycles_ = std::max(1, static_cast<int>(strtol(cycles.c_str(), nullptr, 10)));
  const std::string own_work = folder_ + "/work";
  // Most often both are new: outer, inner, and no question asked.
  if (mkdir(folder_.c_str(), 0777) != 0 || mkdir(own_work.c_str(), 0777) != 0) {
    if (Status s = make_directories(own_work); !s) return fail(s.message());
  }
  if (work_dir_ != own_work) {
    if (Status s = make_directories(work_dir_); !s) return fail(s.message());
  }
  unlink((folder_ + "/error").c_str());
  if (!step_.shared.empty()) {
    const std::string shared = shared_folder();
    if (Status s = make_directories(shared); !s) return fail(s.message());
    const std::string link = work_dir_ + "/" + values_->apply(step_.shared);
    if (Status s = make_link(shared, link); !s) return fail(s.message());
  }
  for (const int parent : package().wp.parents) {
    const Package& other = context_.graph[parent];
    const std::string target = absolute_path(context_.graph.folder(other)) + "/work";
    const std::string name = context_.graph.step_of(other).name.value;
    if (Status s = make_link(target, work_dir_ + "/" + name); !s) return fail(s.message());
  }
  for (const auto& [path, size] : package().outputs) outputs_.push_back(path);
  if (package().work_dir.empty()) {
    // An unfinished operation of a killed engine is done again: what it wrote already goes.
    std::vector<std::string> own = outputs_;
    for (const char* name : {"stdout", "stderr"}) own.push_back(work_dir_ + "/" + name);
    for (const Operation& operation : operations_) {
      for (const Text* name : {&operation.stdout_file, &operation.stderr_file}) {
        if (!name->value.empty()) own.push_back(absolute_path(values_->apply(*name), work_dir_));
      }
    }
    if (!check_waiting_) cut_back(own, package().outputs);
  }
  start_environment();
  const std::string timeout = values_->apply(step_.timeout);
  if (!strip(timeout).empty()) {
    const auto seconds = parse_duration(timeout);
    if (!seconds) {
      return fail("timeout \"" + timeout +
                  "\" is not a duration; write it as 90s, 10m or 01:30:00");
    }
    timeout_text_ = timeout;
    deadline_ = Clock::now() + std::chrono::milliseconds(static_cast<long long>(*seconds * 1000));
  }
}

void Task::start_environment() {
  if (package().environment) {
    environment_ = *package().environment;
    return;
  }
  for (const int parent : package().wp.parents) {
    const Package& other = context_.graph[parent];
    if (!context_.graph.step_of(other).exported || !other.environment) continue;
    for (const auto& [name, value] : *other.environment) environment_[name] = value;
  }
  for (const Text& name : step_.env_unset) environment_[values_->apply(name)] = std::nullopt;
  for (const auto& [name, value] : step_.env) {
    environment_[values_->apply(name)] = values_->apply(value);
  }
  for (const auto& [name, value] : values_->exported()) environment_[name] = value;
}

void Task::set_gpus(const std::vector<std::string>& gpus) {
  environment_["CUDA_VISIBLE_DEVICES"] = join(gpus, ",");
}

std::vector<std::string> Task::process_environment(const std::string& directory) const {
  Environment environment = with_changes(context_.base, environment_);
  environment["PWD"] = directory;
  return entries(environment);
}

Status Task::advance(Next* next) {
  *next = Next::ended;
  Status status;
  for (;;) {
    switch (phase_) {
      case Phase::files:
        if (advance_files()) {
          *next = Next::process;
          return Status::ok();
        }
        if (phase_ == Phase::operations && anything_prepared_) {
          package().prepared = true;
          if (Status s = context_.journal.operation_done(id_, cycle(), -1,
                                                         pack_changes(environment_), sizes());
              !s) {
            return s;
          }
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
  if (Status s = evaluate_active(values_->apply(active), context_.evaluator, active_now); !s) {
    fail(s.message());
    return false;
  }
  return true;
}

bool Task::advance_files() {
  for (; set_ < sets_.size(); ++set_, entry_ = 0) {
    const auto found = context_.benchmark.file_sets.find(sets_[set_]);
    if (found == context_.benchmark.file_sets.end()) continue;
    const auto& all = found->second.entries;
    while (entry_ < all.size()) {
      const auto& entry = all[entry_++];
      anything_prepared_ = true;
      if (const auto* prepare = std::get_if<Prepare>(&entry)) {
        if (run_prepare(*prepare)) return true;
      } else {
        const auto& copy = std::get<FileCopy>(entry);
        bool active = true;
        if (!is_active(copy.active, &active)) return false;
        if (!active) continue;
        std::vector<PlannedFile> files;
        if (Status s = list_files(copy, values_->lookup(), work_dir_, &files); !s) {
          fail(s.message());
        }
        for (const PlannedFile& file : files) {
          if (phase_ == Phase::finished) break;
          if (Status s = place_file(file, work_dir_); !s) fail(s.message());
        }
      }
      if (phase_ == Phase::finished) return false;
    }
  }
  std::vector<FileBytes> made;
  Status s = substitute_files(context_.benchmark, sets_, values_->lookup(), context_.evaluator,
                              read_from(work_dir_), &made);
  if (s) s = write_substituted(made, work_dir_);
  if (!s) {
    fail(s.message());
    return false;
  }
  anything_prepared_ = anything_prepared_ || !made.empty();
  phase_ = Phase::operations;
  return false;
}

bool Task::more_to_come() const {
  if (step_.exported || !platform_.local()) return true;
  return operation_ + 1 < operations_.size() || cycle() + 1 < cycles_;
}

bool Task::run_prepare(const Prepare& prepare) {
  bool active = true;
  if (!is_active(prepare.active, &active) || !active) return false;
  const std::string command = trimmed_command(values_->apply(prepare.command));
  if (command.empty()) return false;
  running_.prepare = true;
  const std::string directory = absolute_path(values_->apply(prepare.work_dir), work_dir_);
  return run(command, directory, values_->apply(prepare.stdout_file),
             values_->apply(prepare.stderr_file), !operations_.empty() || step_.exported);
}

bool Task::run_operation(const Operation& operation) {
  const bool launch = operation_ >= step_.operations.size();
  const std::string command = trimmed_command(launch ? local_launch(step_, values_->lookup())
                                                     : values_->apply(operation.command));
  if (command.empty()) return false;
  running_.prepare = false;
  std::string base = work_dir_;
  if (shared_now_) base = shared_folder();
  const std::string directory = absolute_path(values_->apply(operation.work_dir), base);
  return run(command, directory, values_->apply(operation.stdout_file),
             values_->apply(operation.stderr_file), more_to_come());
}

// Starts `command` in `directory`; output files are named from the work directory (of a shared
// operation: the shared folder).
bool Task::run(const std::string& command, const std::string& directory, const std::string& out,
               const std::string& err, bool capture) {
  if (directory != work_dir_) {
    if (Status s = make_directories(directory); !s) {
      fail(s.message());
      return false;
    }
  }
  std::string base = work_dir_;
  if (shared_now_) base = shared_folder();
  write_do_log(command, directory);
  ProcessSpec spec;
  spec.directory = directory;
  spec.stdout_path = absolute_path(out.empty() ? "stdout" : out, base);
  spec.stderr_path = absolute_path(err.empty() ? "stderr" : err, base);
  spec.merge = spec.stdout_path == spec.stderr_path;
  running_.command = command;
  running_.directory = directory;
  running_.stderr_path = spec.stderr_path;
  running_.capture = capture && !shared_now_ ? folder_ + "/.environment" : std::string();
  spec.argv = {context_.options.shell, "-c",
               running_.capture.empty()
                   ? command
                   : with_capture(command, context_.options.shell, running_.capture)};
  spec.environment = process_environment(directory);
  for (const std::string* path : {&spec.stdout_path, &spec.stderr_path}) {
    if (std::find(outputs_.begin(), outputs_.end(), *path) == outputs_.end()) {
      outputs_.push_back(*path);
    }
  }
  if (Status s = context_.processes.start(spec, &pid_); !s) {
    fail(s.message());
    return false;
  }
  return true;
}

// For people: the commands of a workpackage as a script.
void Task::write_do_log(const std::string& command, const std::string& directory) {
  const std::string name = values_->apply(step_.do_log_file);
  if (name.empty()) return;
  const std::string path = absolute_path(name, folder_);
  std::string text;
  if (!path_exists(path)) {
    text = "#!" + context_.options.shell + "\n\n";
    for (const auto& [variable, value] : with_changes(context_.base, environment_)) {
      text += "export " + variable + "=" + shell_quote(value) + "\n";
    }
    text += "\n";
  }
  if (do_log_directory_ != directory) text += "cd " + shell_quote(directory) + "\n";
  do_log_directory_ = directory;
  text += command + (shared_now_ ? " # shared execution\n" : "\n");
  // A log that cannot be written does not end the work it describes.
  if (Status s = append_file(path, text); !s) context_.log.write(s.message());
}

bool Task::advance_operations(Next* next, Status* status) {
  if (operation_ >= operations_.size() || stop_operations_) {
    if (!stop_operations_ && next_cycle(status)) return false;
    if (phase_ == Phase::finished || !*status) return false;
    if (!platform_.local()) {
      *next = Next::job;
      return true;
    }
    end(State::done, {});
    return false;
  }
  const Operation& operation = operations_[operation_];
  bool active = true;
  if (!is_active(operation.active, &active)) return false;
  if (!active) {
    ++operation_;
    return false;
  }
  if (check_waiting_) {
    // The state and what it rests on change together: a killed engine must not take an operation
    // that began after the wait for one that waited.
    check_waiting_ = false;
    *status = context_.journal.begin();
    if (*status) *status = operation_ended(operation);
    if (*status && state_ == State::running) {
      *status = context_.journal.set_state(id_, State::running, "");
    }
    if (*status) *status = context_.journal.commit();
    return false;
  }
  if (operation.shared && !shared_now_) {
    *next = Next::shared;
    return true;
  }
  if (operation.shared) values_->drop_package_builtins();
  if (run_operation(operation)) {
    *next = Next::process;
    return true;
  }
  if (phase_ != Phase::finished) *status = operation_ended(operation);
  return false;
}

bool Task::next_cycle(Status* status) {
  Package& p = package();
  if (p.wp.cycle + 1 >= cycles_) return false;
  ++p.wp.cycle;
  operation_ = 0;
  values_ = std::make_unique<PackageValues>(context_.graph.values(p));
  const std::string error =
      context_.expander.update(step_, p.wp.point, UpdateMode::cycle, values_->builtins());
  if (!error.empty()) {
    fail(error);
    return false;
  }
  values_ = std::make_unique<PackageValues>(context_.graph.values(p));
  *status = context_.journal.set_parameters(p.wp, context_.pool, context_.graph.definitions(p));
  if (*status) *status = record_operation();
  return static_cast<bool>(*status);
}

// A relative path to a file of the step's own directory, else as it is written.
std::string Task::error_message(const ProcessResult& result) const {
  std::string message = "Error (returncode <> 0) while running \"" + running_.command +
                        "\" in directory \"" + running_.directory + "\"\nMessage in \"" +
                        running_.stderr_path + "\":\n" + last_lines(running_.stderr_path, 5);
  if (result.signalled) {
    const int number = result.status - 128;
    const char* name = strsignal(number);
    if (message.back() != '\n') message += '\n';
    message += "It was ended by signal " + std::to_string(number) + " (" +
               (name != nullptr ? name : "unknown") + ")";
  }
  return message;
}

void Task::take_environment() {
  if (running_.capture.empty()) return;
  std::string text;
  const bool there = static_cast<bool>(read_file(running_.capture, &text));
  unlink(running_.capture.c_str());
  // A command that ended without its shell's knowledge (exec, kill) leaves the environment as it
  // was.
  if (!there || text.empty()) return;
  const Environment before = with_changes(context_.base, environment_);
  if (posix_shell(context_.options.shell)) {
    if (const auto after = parse_exports(text, before)) {
      environment_ = difference(context_.base, *after);
    } else {
      context_.log.write("workpackage " + std::to_string(id_) +
                         ": the environment that its command left could not be read; the next "
                         "operation has the one before");
    }
  } else {
    environment_ = difference(context_.base, parse_env0(text));
  }
}

void Task::time_out() {
  if (pid_ == 0) return;
  context_.processes.kill_tree(pid_, timed_out_ ? SIGKILL : SIGTERM);
  timed_out_ = true;
  deadline_ = Clock::now() + std::chrono::seconds(10);
}

Status Task::process_ended(const ProcessResult& result) {
  // What did not listen to the gentle signal goes with it.
  if (timed_out_) context_.processes.kill_tree(pid_, SIGKILL);
  pid_ = 0;
  take_environment();
  const bool shared = shared_now_;
  if (shared) values_ = std::make_unique<PackageValues>(context_.graph.values(package()));
  if (timed_out_ || result.status != 0) {
    const std::string outcome = timed_out_ ? "timeout" : outcome_of(result.status);
    if (is_expected(step_, outcome, values_->lookup())) {
      end(State::expected, plain_words(outcome));
    } else if (timed_out_) {
      fail("time limit of " + timeout_text_ + " reached while running \"" + running_.command +
           "\" in directory \"" + running_.directory + "\"");
    } else {
      fail(error_message(result));
    }
    return Status::ok();
  }
  if (running_.prepare) return Status::ok();
  return operation_ended(operations_[operation_]);
}

// The command itself went well: what its files say.
Status Task::operation_ended(const Operation& operation) {
  const auto found = [&](const Text& name) {
    const std::string file = values_->apply(name);
    if (file.empty()) return false;
    std::string base = work_dir_;
    if (shared_now_) base = shared_folder();
    const std::string directory = absolute_path(values_->apply(operation.work_dir), base);
    return path_exists(absolute_path(file, directory));
  };
  const std::string command = trimmed_command(values_->apply(operation.command));
  if (found(operation.error_file)) {
    fail("Error file \"" + values_->apply(operation.error_file) +
         "\" found after running the command \"" + command + "\".");
    return Status::ok();
  }
  if (!values_->apply(operation.done_file).empty() && !found(operation.done_file)) {
    // JUBE's mark that this command need not run again.
    char mark[32];
    snprintf(mark, sizeof mark, "/wp_done_%02zu", operation_);
    if (Status s = write_file(folder_ + mark, ""); !s) context_.log.write(s.message());
    const Status recorded = context_.journal.operation_done(
        id_, cycle(), static_cast<int>(operation_) - 1, pack_changes(environment_), sizes());
    end(State::waiting, "waits for \"" + values_->apply(operation.done_file) + "\"");
    return recorded;
  }
  if (found(operation.break_file)) {
    stop_operations_ = true;
    context_.log.write("workpackage " + std::to_string(id_) + ": \"" +
                       values_->apply(operation.break_file) +
                       "\" was found, its further operations are left out");
    return Status::ok();
  }
  if (!operation.done_file.value.empty()) {
    char mark[32];
    snprintf(mark, sizeof mark, "/wp_done_%02zu", operation_);
    unlink((folder_ + mark).c_str());
  }
  shared_now_ = false;
  ++operation_;
  return record_operation();
}

// Where it stands, for a continued run; the last operation is recorded with the package's end.
Status Task::record_operation() {
  package().operations_done = static_cast<int>(operation_);
  if (operation_ >= operations_.size() && cycle() + 1 >= cycles_ && platform_.local()) {
    return Status::ok();
  }
  return context_.journal.operation_done(id_, cycle(), static_cast<int>(operation_) - 1,
                                         pack_changes(environment_), sizes());
}

Status Task::shared_done() {
  ++operation_;
  return record_operation();
}

namespace {

// A file, or all files of a folder in order of their names: small ones by content, large ones by
// size and time.
Status add_input(const std::string& source, const std::string& target, StepInputs* inputs) {
  struct stat info {};
  std::string bytes;
  if (stat(source.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    std::error_code error;
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(source, error)) {
      names.push_back(entry.path().filename().string());
    }
    if (error) return Status::error("cannot read '" + source + "': " + error.message());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (Status s = add_input(source + "/" + name, target + "/" + name, inputs); !s) return s;
    }
    return Status::ok();
  }
  if (S_ISREG(info.st_mode) && info.st_size < (1 << 20)) {
    if (Status s = read_file(source, &bytes); !s) return s;
  } else {
    bytes = source + " " + std::to_string(info.st_size) + " " +
            std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec);
  }
  inputs->files.emplace_back(target, bytes);
  return Status::ok();
}

}  // namespace

Status Task::inputs(StepInputs* inputs) {
  inputs->step = step_.name.value;
  const Lookup lookup = values_->lookup();
  for (const Operation& operation : operations_) {
    bool active = true;
    if (Status s = evaluate_active(values_->apply(operation.active), context_.evaluator, &active);
        !s) {
      return s;
    }
    if (active) inputs->commands.push_back(values_->apply(operation.command));
  }
  for (const Text& module : step_.modules)
    inputs->commands.push_back("module " + values_->apply(module));
  for (const auto& [name, value] : environment_) {
    inputs->environment.emplace_back(name, value.value_or(""));
  }
  std::vector<PlannedFile> files;
  for (const std::string& name : sets_) {
    if (const auto set = context_.benchmark.file_sets.find(name);
        set != context_.benchmark.file_sets.end()) {
      for (const auto& entry : set->second.entries) {
        if (const auto* prepare = std::get_if<Prepare>(&entry)) {
          inputs->commands.push_back(values_->apply(prepare->command));
        } else if (Status s = list_files(std::get<FileCopy>(entry), lookup, work_dir_, &files);
                   !s) {
          return s;
        }
      }
    }
    if (const auto set = context_.benchmark.substitute_sets.find(name);
        set != context_.benchmark.substitute_sets.end()) {
      for (const Substitution& sub : set->second.substitutions) {
        inputs->commands.push_back(values_->apply(sub.source) + " -> " + values_->apply(sub.dest));
      }
    }
  }
  for (const PlannedFile& file : files) {
    if (Status s = add_input(file.source, file.target, inputs); !s) return s;
  }
  return Status::ok();
}

}  // namespace tally
