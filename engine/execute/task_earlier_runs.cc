// Files that earlier runs and other workpackages left outside the run's folder decide nothing about a
// workpackage: neither its marks (done_file, break_file, error_file) nor a file to which its
// substitutions append.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "engine/base/file_stamp.h"
#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/execute/task.h"

namespace tally {

bool Task::guards_outside_files() const {
  return context_.run.benchmark().rules.outside_files_are_guarded;
}

bool Task::has_marks() const {
  return std::any_of(operations_.begin(), operations_.end(), [](const Operation& each) {
    return !each.done_file.value.empty() || !each.break_file.value.empty() ||
           !each.error_file.value.empty();
  });
}

// The time of a file in its folder is kept for `continue`. It is needed only where files of earlier
// runs could be taken for its own.
Status Task::note_begin() {
  if (!guards_outside_files() || (appended_files().empty() && !has_marks())) return Status::ok();
  const std::string path = folder_ + "/.begun";
  const bool begins = phase_ == Phase::files && operation_ == 0 && cycle() == 0 &&
                      !check_waiting_ && workpackage().job_name.empty();
  const int flags = begins ? O_CREAT | O_TRUNC | O_WRONLY : O_RDONLY;
  const int file = open_own(context_.run_dir, path, flags, 0644);
  if (file < 0 && !begins && errno == ENOENT) return Status::ok();  // an earlier program's
  if (file < 0) return file_error(path, begins ? "cannot write" : "cannot read", errno);
  Status status;
  struct stat info {};
  if (begins) {
    status = file_time_now(file, &begun_ns_);
  } else if (fstat(file, &info) == 0) {
    begun_ns_ = stamp_of(info).written_ns;
  } else {
    status = file_error(path, "cannot read", errno);
  }
  close(file);
  return status;
}

// Whether the file lies outside the run, also if a link of the run leads to it.
bool Task::is_outside_run(const std::string& file) const {
  if (!starts_with(file, context_.run_dir + "/")) return true;
  std::error_code error;
  const std::string real = std::filesystem::weakly_canonical(file, error).string();
  if (error) return false;
  const std::string run = std::filesystem::weakly_canonical(context_.run_dir, error).string();
  return !error && !starts_with(real, run + "/");
}

// Whether the file is outside the run and was changed last before the workpackage began.
bool Task::is_from_before(const std::string& file) const {
  if (file.empty() || !guards_outside_files() || !is_outside_run(file)) return false;
  const long long changed = file_changed_ns(file);
  return changed != 0 && changed < begun_ns_;
}

// A file outside the run that belongs to the workpackage is there before it: a done_file would end
// its command's work at once.
bool Task::is_of_earlier_run(const char* key, const std::string& file) {
  if (file.empty() || !guards_outside_files() || !is_outside_run(file)) return false;
  bool there = false;
  if (Status s = path_exists(file, &there); !s) {
    fail(Reason::files, s);
    return true;
  }
  if (there) put_off_for(key, file);
  return there;
}

void Task::put_off_for(const char* key, const std::string& file) {
  Outcome outcome = in_state(State::pending, Reason::host);
  outcome.detail = fmt::format(
      "the {} '{}' is there already, from before this command; remove it, then continue the run",
      key, file);
  end(std::move(outcome));
}

// Marks that end the work before it begins. One that its file sets' commands have made is its own.
bool Task::finds_marks_before_commands() {
  return std::any_of(operations_.begin(), operations_.end(), [&](const Operation& each) {
    return !each.shared && finds_earlier_marks(each);
  });
}

// Whether it is put off because of a mark that decides about nothing. A link that a command has
// made may lead to one.
bool Task::finds_earlier_marks(const Operation& operation) {
  for (const auto& [key, name] : {std::pair{"error_file", &operation.error_file},
                                  std::pair{"break_file", &operation.break_file}}) {
    const std::string file = path_of(operation, *name);
    if (!is_from_before(file)) continue;
    put_off_for(key, file);
    return true;
  }
  return false;
}

// The files to which its substitutions append, absolute.
std::vector<std::string> Task::appended_files() const {
  std::vector<std::string> files;
  const auto& all = context_.run.benchmark().substitute_sets;
  for (const std::string& name : sets_) {
    const auto set = all.find(name);
    if (set == all.end()) continue;
    for (const IoFile& io : set->second.files) {
      if (!io.append) continue;
      files.push_back(place_of_substituted(expand_path(substitute(io.out.value, values_->lookup())),
                                           work_dir_));
    }
  }
  return files;
}

// A substitution would add to what an earlier run or another workpackage has left. Where a link leads
// out of the run is known once the file sets are placed; a file from after their begin is then of one
// of their own commands, unless it still has what it had before.
bool Task::appends_to_earlier_file(Outputs which) {
  for (const std::string& file : appended_files()) {
    const bool named = !starts_with(file, context_.run_dir + "/");
    if (named != (which == Outputs::named_outside)) continue;
    const bool changed = !named && file_changed_ns(file) >= begun_ns_;
    const bool own = changed && !has_bytes_from_before(file);
    if (phase_ == Phase::finished) return true;
    if (!own && is_of_earlier_run("substituted file", file)) return true;
    if (is_of_another(file)) return true;
  }
  return false;
}

// Before each of them: a link to the file may be one of an earlier command.
Status Task::look_before_prepare() {
  if (!guards_outside_files() || cycle() > 0) return Status::ok();
  for (const std::string& file : appended_files()) {
    if (before_prepare_.count(file) != 0 || !is_outside_run(file)) continue;
    Found& found = before_prepare_[file];
    if (file_changed_ns(file) >= begun_ns_) continue;
    if (Status s = stamp_and_digest(file, &found.stamp, &found.digest); !s) return s;
  }
  return Status::ok();
}

// Whether its first bytes are those of before: it was touched or appended to. A file that is written
// anew may have the same ones, too; nobody can tell.
bool Task::has_bytes_from_before(const std::string& file) {
  const auto before = before_prepare_.find(file);
  if (before == before_prepare_.end() || before->second.stamp.size <= 0) return false;
  FileStamp now;
  std::string digest;
  Status s = file_stamp(file, &now);
  if (s && now.size >= before->second.stamp.size)
    s = digest_part(file, 0, before->second.stamp.size, &digest);
  if (!s) fail(Reason::files, s);
  return digest == before->second.digest;
}

// Two workpackages of one command would append to the file, in any order.
bool Task::is_of_another(const std::string& file) {
  if (!guards_outside_files() || !is_outside_run(file)) return false;
  std::error_code error;
  const std::string real = std::filesystem::weakly_canonical(file, error).string();
  const auto [owner, first] = context_.appended_files.emplace(error ? file : real, id_);
  if (first || owner->second == id_) return false;
  Outcome outcome = in_state(State::pending, Reason::host);
  outcome.detail = fmt::format(
      "the substitution appends to '{}', as that of workpackage {} does; give each a file of its "
      "own",
      file, owner->second);
  end(std::move(outcome));
  return true;
}

}  // namespace tally
