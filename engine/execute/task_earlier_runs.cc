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

#include "engine/base/digest.h"
#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/execute/task.h"

namespace tally {
namespace {

// In a workpackage's folder; its time is that of the begin.
constexpr const char* begin_file = "/.begun";

bool has_marks(const Step& step) {
  return std::ranges::any_of(step.operations, [](const Operation& each) {
    return !each.done_file.value.empty() || !each.break_file.value.empty() ||
           !each.error_file.value.empty();
  });
}

// Whether workpackages of the step may ask whose a file is.
bool may_ask_for_origins(const Benchmark& benchmark, const Step& step) {
  if (has_marks(step)) return true;
  // The names of a step's sets may depend on parameters.
  const auto& sets = benchmark.substitute_sets;
  return !step.use.empty() && std::ranges::any_of(sets, [](const auto& set) {
    return std::ranges::any_of(set.second.files, [](const IoFile& file) { return file.append; });
  });
}

// Without links. The file itself may not be there.
std::string without_links(const std::string& file) {
  std::error_code error;
  const std::string real = std::filesystem::weakly_canonical(file, error).string();
  return error ? file : real;
}

}  // namespace

bool Task::guards_outside_files() const {
  return context_.run.benchmark().rules.outside_files_are_guarded;
}

// Whether somebody asks what it has made: itself, or a step that depends on it.
bool Task::begin_counts() const {
  if (!guards_outside_files()) return false;
  if (has_marks(step_) || !appended_files().empty()) return true;
  const Benchmark& benchmark = context_.run.benchmark();
  return std::ranges::any_of(benchmark.steps, [&](const Step& other) {
    return may_ask_for_origins(benchmark, other) &&
           depends_on(benchmark, other.name.value, step_.name.value);
  });
}

// The time of a file in its folder is kept for `continue`. It is needed only where files of earlier
// runs could be taken for its own.
Status Task::note_begin() {
  if (!begin_counts()) return Status::ok();
  const std::string path = folder_ + begin_file;
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
  if (status) first_begun_ns_ = context_.first_begun_ns.emplace(id_, begun_ns_).first->second;
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

// Workpackages that it depends on, directly or not.
std::vector<int> Task::ancestors() const {
  std::vector<int> all = workpackage().wp.parents;
  for (size_t i = 0; i < all.size(); ++i) {
    for (const int parent : context_.graph[all[i]].wp.parents) {
      if (!contains(all, parent)) all.push_back(parent);
    }
  }
  return all;
}

bool Task::is_of_ancestor(long long made_ns, Until until) const {
  for (const int ancestor : ancestors()) {
    const WorkpackageNode& node = context_.graph[ancestor];
    const std::string folder = context_.graph.folder(node);
    FileStamp begin, end;
    Status looked = file_stamp(folder + begin_file, &begin);
    if (looked) looked = file_stamp(folder + "/done", &end);
    if (!looked || !begin.there()) continue;
    const auto first = context_.first_begun_ns.find(ancestor);
    const long long begun =
        first == context_.first_begun_ns.end() ? begin.written_ns : first->second;
    if (made_ns < begun) continue;
    if (until == Until::own_begin || made_ns <= end.written_ns) return true;
  }
  return false;
}

Task::Origin Task::origin_of(const std::string& file, Until until) const {
  if (file.empty() || !guards_outside_files() || !is_outside_run(file)) return Origin::own;
  const long long made = file_made_ns(file);
  if (made == 0 || made >= begun_ns_) return Origin::own;
  if (made >= first_begun_ns_) return Origin::attempt;
  return is_of_ancestor(made, until) ? Origin::ancestor : Origin::before;
}

// A mark from after its ancestors' ends may be another workpackage's that uses its work_dir.
Task::Origin Task::origin_of_mark(const std::string& file) const {
  const Origin origin = origin_of(file, Until::own_begin);
  if (origin != Origin::ancestor || !shares_work_dir()) return origin;
  return origin_of(file, Until::end_of_ancestor);
}

// One that would end its command's work at once.
bool Task::finds_earlier_done_file(const std::string& file) {
  bool there = false;
  if (Status s = file.empty() ? Status::ok() : path_exists(file, &there); !s) {
    fail(Reason::files, s);
    return true;
  }
  if (!there || origin_of_mark(file) != Origin::before) return false;
  put_off_for("done_file", file);
  return true;
}

void Task::put_off_for(const char* key, const std::string& file) {
  Outcome outcome = in_state(State::pending, Reason::host);
  const bool attempt = origin_of(file, Until::own_begin) == Origin::attempt;
  outcome.detail =
      fmt::format("the {} '{}' is there already, {}; remove it, then continue the run", key, file,
                  attempt ? "as an attempt before left it" : "from before this command");
  end(std::move(outcome));
}

// Marks that end the work before it begins. One that its file sets' commands have made is its own.
bool Task::finds_marks_before_commands() {
  if (marks_sought_ || operation_ > 0 || cycle() > 0 || check_waiting_) return false;
  marks_sought_ = true;
  return std::ranges::any_of(operations_,
                             [&](const Operation& each) { return finds_earlier_marks(each); });
}

// Whether it is put off because of a mark that decides about nothing. A link that a command has
// made may lead to one.
bool Task::finds_earlier_marks(const Operation& operation) {
  for (const auto& [key, name] : {std::pair{"error_file", &operation.error_file},
                                  std::pair{"break_file", &operation.break_file}}) {
    const std::string file = path_of(operation, *name);
    if (origin_of_mark(file) != Origin::before) continue;
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

// Whether a substitution must not append to it. A file that an ancestor wrote is its input.
bool Task::is_foreign(const std::string& file) const {
  const Origin origin = origin_of(file, Until::end_of_ancestor);
  if (origin != Origin::attempt) return origin == Origin::before;
  const auto known = context_.appended_files.find(without_links(file));
  return known == context_.appended_files.end() || !known->second.set_back;
}

// A substitution would add to what an earlier run or another workpackage has left. Where a link leads
// out of the run is known once the file sets are placed; a file from after their begin is then of one
// of their own commands, unless it still has what it had before.
bool Task::appends_to_earlier_file(Outputs which) {
  for (const std::string& file : appended_files()) {
    const bool named = !starts_with(file, context_.run_dir + "/");
    if (named != (which == Outputs::named_outside)) continue;
    if (!guards_outside_files() || !is_outside_run(file)) continue;
    bool there = false;
    const bool seen_before = appended_.count(file) > 0;
    Status looked = look_at_appended(file);
    if (looked) looked = path_exists(file, &there);
    if (!looked) {
      fail(Reason::files, looked);
      return true;
    }
    const bool changed = (seen_before ? file_changed_ns(file) : file_made_ns(file)) >= begun_ns_;
    const bool foreign = changed ? named || has_bytes_from_before(file) : is_foreign(file);
    if (phase_ == Phase::finished) return true;
    if (there && foreign) {
      put_off_for("substituted file", file);
      return true;
    }
    if (is_of_another(file)) return true;
  }
  return false;
}

Status Task::look_at_appended(const std::string& file) {
  const auto [entry, is_new] = appended_.try_emplace(file);
  if (!is_new) return Status::ok();
  Found& found = entry->second;
  found.real = without_links(file);
  if (origin_of(file, Until::own_begin) == Origin::own) return Status::ok();
  found.foreign = is_foreign(file);
  return stamp_and_digest(file, &found.stamp, &found.digest);
}

// Before each of them: a link to the file may be one of an earlier command.
Status Task::look_before_prepare() {
  if (!guards_outside_files() || cycle() > 0) return Status::ok();
  for (const std::string& file : appended_files()) {
    if (!is_outside_run(file)) continue;
    TRY(look_at_appended(file));
  }
  return Status::ok();
}

// Whether its first or last bytes are those of before: it was touched, or something was put behind
// or before them. A file that is written anew may have the same ones, too; nobody can tell.
bool Task::has_bytes_from_before(const std::string& file) {
  const auto before = appended_.find(file);
  if (before == appended_.end() || !before->second.foreign || before->second.stamp.size <= 0)
    return false;
  const long long size = before->second.stamp.size;
  FileStamp now;
  std::string first, last;
  Status s = file_stamp(file, &now);
  if (s && now.size >= size) s = digest_part(file, 0, size, &first);
  if (s && now.size >= size) s = digest_part(file, now.size - size, now.size, &last);
  if (!s) fail(Reason::files, s);
  return first == before->second.digest || last == before->second.digest;
}

// The next attempt would append a second time. Where the file was there before, and what it had was
// changed, nobody can make it what it was; that attempt is put off.
void Task::set_back_appended(const std::string& folder) const {
  for (const auto& [file, before] : appended_) {
    const auto known = context_.appended_files.find(before.real);
    if (before.foreign ||
        (known != context_.appended_files.end() && known->second.workpackage != id_))
      continue;
    const long long changed = file_changed_ns(before.real);
    bool as_before = changed < begun_ns_;  // or not there
    if (!as_before) {
      keep_tail(before.real, std::max(0LL, before.stamp.size), folder);
      std::string digest;
      const bool was_there = before.stamp.there();
      if (was_there && digest_part(before.real, 0, before.stamp.size, &digest))
        as_before =
            digest == before.digest && truncate(before.real.c_str(), before.stamp.size) == 0;
      if (!was_there) as_before = unlink(before.real.c_str()) == 0;
    }
    context_.appended_files[before.real] = {id_, as_before};
  }
}

// Two workpackages of one command would append to the file, in any order. One that depends on the
// other comes after it.
bool Task::is_of_another(const std::string& file) {
  RunContext::Appended& known =
      context_.appended_files.try_emplace(without_links(file), RunContext::Appended{id_})
          .first->second;
  const std::vector<int> before = ancestors();
  if (contains(before, known.workpackage)) known = {id_};
  if (known.workpackage == id_) return false;
  Outcome outcome = in_state(State::pending, Reason::host);
  outcome.detail = fmt::format(
      "the substitution appends to '{}', as that of workpackage {} does; give each a file of its "
      "own",
      file, known.workpackage);
  end(std::move(outcome));
  return true;
}

}  // namespace tally
