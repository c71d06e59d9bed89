// The operations of a workpackage: starts their processes and interprets their ends.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/presence.h"
#include "engine/base/secrets.h"
#include "engine/base/text.h"
#include "engine/execute/task.h"
#include "engine/workspace/left_behind.h"

namespace tally {
namespace {

// The content of a file for an environment, until the command's shell writes it.
constexpr std::string_view untouched = "-\n";

// A command as JUBE passes it on, with white space and semicolons removed from both ends.
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

}  // namespace

bool Task::more_to_come() const {
  if (step_.exported || !platform_.local()) return true;
  return operation_ + 1 < operations_.size() || cycle() + 1 < cycles_;
}

bool Task::run_prepare(const Prepare& prepare) {
  place_ = prepare.command.mark;
  bool active = true;
  if (!is_active(prepare.active, &active) || !active) return false;
  const std::string command = trimmed_command(values_->apply(prepare.command));
  if (command.empty()) return false;
  running_.prepare = true;
  running_.sets_env = false;
  const std::string directory = opened_path(values_->path(prepare.work_dir), work_dir_);
  return run(command, directory, values_->path(prepare.stdout_file),
             values_->path(prepare.stderr_file), true);  // the next copy entry may name it
}

bool Task::run_operation(const Operation& operation) {
  const bool launch = operation_ >= step_.operations.size();
  LocalLaunch local;
  if (launch) local = step_.kinds->local_launch(step_, values_->lookup());
  const std::string command =
      trimmed_command(launch ? local.command : values_->apply(operation.command));
  if (command.empty()) return false;
  running_.prepare = false;
  running_.sets_env = local.sets_env;
  std::string base = work_dir_;
  if (shared_now_) base = shared_folder();
  const std::string directory = opened_path(values_->path(operation.work_dir), base);
  if (finds_earlier_done_file(path_of(operation, operation.done_file))) return false;
  return run(command, directory, values_->path(operation.stdout_file),
             values_->path(operation.stderr_file), more_to_come());
}

// Starts `command` in `directory`.
bool Task::run(const std::string& command, const std::string& directory, const std::string& out,
               const std::string& err, bool capture) {
  if (directory != work_dir_) {
    if (const std::string name = unknown_variable(directory); !name.empty()) {
      fail(Reason::directory, "work_dir \"" + directory + "\": " + name +
                                  " is neither a parameter nor in the environment");
      return false;
    }
    if (Status s = make_directories(directory); !s) {
      fail(Reason::directory, s);
      return false;
    }
  }
  write_do_log(command, directory);
  ProcessSpec spec;
  spec.directory = directory;
  spec.stdout_path = output_path(out, "stdout", shared_now_);
  spec.stderr_path = output_path(err, "stderr", shared_now_);
  spec.own_outputs = out.empty() && err.empty();
  if (shared_now_) {
    if (Status s = cut_back_shared({spec.stdout_path, spec.stderr_path}); !s) {
      fail(Reason::directory, s);
      return false;
    }
  }
  spec.merge = spec.stdout_path == spec.stderr_path;
  running_.command = command;
  running_.directory = directory;
  running_.stderr_path = spec.stderr_path;
  running_.capture = capture && !shared_now_ ? folder_ + "/.environment" : std::string();
  if (!running_.capture.empty() && !make_capture_file()) return false;
  spec.argv = {context_.settings.shell, "-c",
               running_.capture.empty()
                   ? command
                   : with_capture(command, context_.settings.shell, running_.capture)};
  spec.environment = process_environment(directory);
  for (const std::string* path : {&spec.stdout_path, &spec.stderr_path}) {
    if (!contains(outputs_, *path)) {
      outputs_.push_back(*path);
    }
  }
  if (Status s = context_.processes.start(spec, &pid_); !s) {
    fail(Reason::host, s);
    return false;
  }
  // By it the process's session is known after a kill. The mark in the environment is known
  // without.
  if (const std::string start = start_mark(context_.boot, pid_); !start.empty()) {
    if (Status s = context_.run.journal().process_started({id_, pid_, start}); !s) {
      context_.log.write(s.message());
    }
  }
  return true;
}

// Environments hold secrets, so only the user may read the file. It is made anew: another one of
// that name may be a link.
bool Task::make_capture_file() {
  const std::string& root = context_.run_dir;
  if (Status s = remove_own(root, running_.capture); !s) {
    fail(Reason::host, s);
    return false;
  }
  const int fd = open_own(root, running_.capture, O_CREAT | O_EXCL | O_WRONLY, private_mode);
  if (fd < 0) {
    fail(Reason::host, file_error(running_.capture, "cannot write", errno));
    return false;
  }
  const ssize_t put = write(fd, untouched.data(), untouched.size());
  const int reason = errno;
  close(fd);
  if (put != static_cast<ssize_t>(untouched.size())) {
    fail(Reason::host, file_error(running_.capture, "cannot write", put < 0 ? reason : ENOSPC));
    return false;
  }
  return true;
}

// Writes the commands of a workpackage as a script, for people.
void Task::write_do_log(const std::string& command, const std::string& directory) {
  const std::string name = values_->path(step_.do_log_file);
  if (name.empty()) return;
  const std::string path = opened_path(name, folder_);
  std::string text;
  int mode = 0644;
  bool there = false;
  // A failure to write the log does not end the work.
  if (Status s = path_exists(path, &there); !s) return context_.log.write(s.message());
  if (!there) {
    const Environment environment = with_changes(base(), environment_);
    if (has_secret(secrets())) mode = private_mode;
    text = "#!" + context_.settings.shell + "\n\n";
    for (const auto& [variable, value] : environment) {
      text += "export " + variable + "=" + shell_quote(value) + "\n";
    }
    text += "\n";
  }
  if (do_log_directory_ != directory) text += "cd " + shell_quote(directory) + "\n";
  do_log_directory_ = directory;
  text += command + (shared_now_ ? " # shared execution\n" : "\n");
  if (Status s = append_own_file(context_.run_dir, path, text, mode); !s)
    context_.log.write(s.message());
}

Outcome Task::failure_of_process(const ProcessResult& result) const {
  Outcome outcome;
  if (timed_out_) {
    outcome = failure(Reason::time_limit, timeout_text_);
  } else {
    outcome = failure(result.signalled ? Reason::signal : Reason::command,
                      last_lines(running_.stderr_path, 5));
    outcome.file = running_.stderr_path;
  }
  if (result.signalled) {
    outcome.signal = result.status - 128;
  } else {
    outcome.exit_code = result.status;
  }
  outcome.command = running_.command;
  outcome.directory = running_.directory;
  return outcome;
}

// Takes over the environment that the command left. The next operation would compute something else
// without it, so that a file that could not be written or read is an error.
Status Task::take_environment(int exit_status) {
  if (running_.capture.empty()) return Status::ok();
  const std::string file = std::exchange(running_.capture, std::string());
  std::string text;
  TRY(read_own_file(context_.run_dir, file, &text));
  TRY(remove_own(context_.run_dir, file));
  if (text == untouched) {
    // A command that ended without its shell leaves the environment unchanged: exec, or a signal,
    // which is a failure anyway.
    if (!has_shell_word(running_.command, "exec")) {
      if (exit_status == no_environment_status) {
        return Status::error(
            file + ": the shell could not open the file for the environment that the command left",
            EIO);
      }
      context_.log.write(workpackage().directory +
                         ": a command left no environment: a script that it reads ended its shell "
                         "(exec), or took its trap for EXIT; exports of that command are lost");
    }
    return Status::ok();
  }
  if (text.empty()) {
    return Status::error(file + ": the shell could not write the environment that the command left",
                         ENOSPC);
  }
  if (!posix_shell(context_.settings.shell)) {
    environment_ = difference(base(), parse_env0(text));
  } else if (const auto after = parse_exports(text, with_changes(base(), environment_))) {
    environment_ = difference(base(), *after);
  } else {
    return Status::error(file + ": the environment that the command left is not complete", ENOSPC);
  }
  return Status::ok();
}

void Task::time_out() {
  if (pid_ == 0) return;
  context_.processes.kill_tree(pid_, timed_out_ ? SIGKILL : SIGTERM);
  timed_out_ = true;
  deadline_ = Clock::now() + std::chrono::seconds(10);
}

Status Task::process_ended(const ProcessResult& result) {
  // Processes that ignored the gentle signal are killed too.
  if (timed_out_) context_.processes.kill_tree(pid_, SIGKILL);
  pid_ = 0;
  const Status environment = take_environment(result.status);
  const bool lost = !environment && result.status == no_environment_status;
  const bool shared = shared_now_;
  if (shared) values_ = std::make_unique<WorkpackageValues>(context_.graph.values(workpackage()));
  if (timed_out_ || (result.status != 0 && !lost)) {
    const std::string outcome = timed_out_ ? "timeout" : step_.kinds->outcome_of(result.status);
    if (step_.kinds->is_expected(step_, outcome, values_->lookup())) {
      end(in_state(State::expected, expected_reason(outcome)));
    } else {
      end(failure_of_process(result));
    }
    return Status::ok();
  }
  if (!environment) {
    fail(Reason::host, environment);
    return Status::ok();
  }
  if (running_.prepare) return Status::ok();
  return operation_ended(operations_[operation_]);
}

// Empty: the operation has no such file.
std::string Task::path_of(const Operation& operation, const Text& name) const {
  if (name.value.empty()) return {};
  if (!operation.shared) return path_of(name, operation.work_dir, *values_, work_dir_);
  WorkpackageValues values = *values_;
  values.drop_workpackage_builtins();
  return path_of(name, operation.work_dir, values, shared_folder());
}

std::string Task::path_of(const Text& name, const Text& folder, const WorkpackageValues& values,
                          const std::string& base) {
  const std::string file = values.path(name);
  return file.empty() ? file : opened_path(file, opened_path(values.path(folder), base));
}

Status Task::finds(const Operation& operation, const Text& name, bool* found) const {
  *found = false;
  const std::string path = path_of(operation, name);
  return path.empty() ? Status::ok() : path_exists(path, found);
}

// The command itself succeeded. Its files decide about the rest.
Status Task::operation_ended(const Operation& operation) {
  bool error = false;
  bool done = false;
  bool breaks = false;
  Status looked = finds(operation, operation.error_file, &error);
  if (looked) looked = finds(operation, operation.done_file, &done);
  if (looked) looked = finds(operation, operation.break_file, &breaks);
  if (!looked) {
    fail(Reason::files, looked);
    return Status::ok();
  }
  if (finds_earlier_marks(operation)) return Status::ok();
  // A mark that an attempt before left is none of this attempt.
  const auto from = [&](const Text& name) { return origin_of_mark(path_of(operation, name)); };
  error = error && from(operation.error_file) != Origin::attempt;
  breaks = breaks && from(operation.break_file) != Origin::attempt;
  const Origin done_by = done ? from(operation.done_file) : Origin::own;
  const bool old_done = done_by == Origin::before || done_by == Origin::attempt;
  if (error) {
    Outcome outcome = failure(Reason::error_file, "");
    outcome.file = values_->apply(operation.error_file);
    outcome.command = trimmed_command(values_->apply(operation.command));
    end(std::move(outcome));
    return Status::ok();
  }
  if (old_done || (!done && !values_->apply(operation.done_file).empty())) {
    wait_for_done_file(operation, done_by);
    return Status::ok();
  }
  if (breaks) {
    stop_operations_ = true;
    context_.log.write("workpackage " + std::to_string(id_) + ": \"" +
                       values_->apply(operation.break_file) +
                       "\" was found, its further operations are left out");
    return Status::ok();
  }
  if (!operation.done_file.value.empty()) {
    char mark[32];
    snprintf(mark, sizeof mark, "/wp_done_%02zu", operation_);
    if (Status s = remove_own(context_.run_dir, folder_ + mark); !s) {
      context_.log.write(s.message());
    }
  }
  shared_now_ = false;
  ++operation_;
  return record_operation();
}

// `there`: of what is there and does not count.
void Task::wait_for_done_file(const Operation& operation, Origin there) {
  // JUBE's marker file: this command need not run again.
  char mark[32];
  snprintf(mark, sizeof mark, "/wp_done_%02zu", operation_);
  if (Status s = write_own_file(context_.run_dir, folder_ + mark, ""); !s)
    context_.log.write(s.message());
  Outcome outcome = in_state(State::waiting, Reason::done_file);
  outcome.file = values_->apply(operation.done_file);
  if (there == Origin::before) outcome.detail = "one from before this workpackage is there";
  if (there == Origin::attempt) outcome.detail = "one that the attempt before left is there";
  if (note_output_sizes()) end(std::move(outcome));
}

// Records the progress for a resumed run. The last operation is recorded with the workpackage's
// end.
Status Task::record_operation() {
  workpackage().operations_done = static_cast<int>(operation_);
  if (operation_ >= operations_.size() && cycle() + 1 >= cycles_ && platform_.local()) {
    return Status::ok();
  }
  return record_progress();
}

Status Task::record_progress() {
  return note_output_sizes() ? write_progress() : Status::ok();
}

// False: it has ended, because a file of unknown size would be emptied when the run is continued.
bool Task::note_output_sizes() {
  OutputSizes now;
  if (Status s = output_sizes(outputs_, &now); !s) {
    fail(Reason::files, s);
    return false;
  }
  OutputSizes& outputs = workpackage().outputs;
  outputs = before_;
  outputs.insert(outputs.end(), now.begin(), now.end());
  return true;
}

Status Task::write_progress() const {
  return context_.run.journal().operation_done(id_, cycle(), static_cast<int>(operation_) - 1,
                                               pack_changes(environment_), workpackage().outputs);
}

Status Task::shared_done() {
  const Operation& operation = operations_[operation_];
  for (const auto& [name, otherwise] :
       {std::pair{&operation.stdout_file, "stdout"}, std::pair{&operation.stderr_file, "stderr"}}) {
    const std::string path = output_path(values_->path(*name), otherwise, true);
    if (!contains(outputs_, path)) {
      outputs_.push_back(path);
    }
  }
  ++operation_;
  return record_operation();
}

}  // namespace tally
