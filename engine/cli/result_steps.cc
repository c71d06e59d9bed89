#include "engine/cli/show_results.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "engine/base/digest.h"
#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/prepare.h"
#include "engine/cli/removal.h"
#include "engine/expand/expand.h"
#include "engine/expand/substitute.h"
#include "engine/report/grid.h"
#include "engine/workpackage/values.h"
#include "engine/workspace/environment.h"
#include "engine/workspace/process.h"
#include "engine/workspace/substitute_files.h"
#include "engine/workspace/work_directory.h"

namespace tally {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMade = ".made";  // in the folder: the digest of what it was made from

struct TextFile {
  std::string name, text;
};

std::vector<TextFile> csv_files(const std::vector<RenderedResult>& tables) {
  std::vector<TextFile> files;
  for (const RenderedResult& one : tables)
    if (one.definition != nullptr) files.push_back({one.name + ".csv", layout(one.grid, "", {})});
  return files;
}

// Adds a file's bytes, or those of all files below a folder with their names.
Status add_content(const std::string& path, Digest& digest) {
  std::vector<std::string> files = {path};
  std::error_code error;
  if (fs::is_directory(path, error)) {
    files.clear();
    for (fs::recursive_directory_iterator at(path, error), end; !error && at != end;
         at.increment(error))
      if (at->is_regular_file(error)) files.push_back(at->path().string());
    std::ranges::sort(files);
  }
  if (error) return Status::error(path + ": cannot be read: " + error.message());
  for (const std::string& file : files) {
    std::string bytes;
    TRY(digest_file(file, &bytes));
    digest.add(file).add(bytes);
  }
  return Status::ok();
}

// Lets one command at a time make the files of a run: another one waits, and finds them made. The
// kernel gives the lock back when the process ends.
class OneAtATime {
 public:
  OneAtATime(const std::string& root, Status* status) {
    *status = make_own_directories(root, root + "/result");
    if (!*status) return;
    file_ = open_own(root, root + "/result", O_RDONLY | O_DIRECTORY);
    // Two commands at once are the user's where a file system has no locks.
    while (file_ >= 0 && flock(file_, LOCK_EX) != 0 && errno == EINTR) continue;
  }
  ~OneAtATime() {
    if (file_ >= 0) close(file_);
  }
  OneAtATime(const OneAtATime&) = delete;
  OneAtATime& operator=(const OneAtATime&) = delete;

 private:
  int file_ = -1;
};

// One step. Its methods are called in their order.
class ResultStep {
 public:
  ResultStep(const Settings& settings, const Run& run, const Step& step)
      : settings_(settings),
        run_(run),
        step_(step),
        builtins_(run_builtins(run.info(), &step)),
        root_(absolute_path(run.directory().path)),
        folder_(root_ + "/result/" + step.name.value),
        work_(folder_ + ".new") {
    for (const Operation& operation : step.operations)
      commands_.emplace_back(strip(put_in(operation.command)));
    for (const auto& [name, text] : step.env) changes_[put_in(name)] = put_in(text);
    for (const Text& name : step.env_unset) changes_[put_in(name)] = std::nullopt;
  }

  Status find_files() {
    for (const Text& use : step_.use) {
      const auto set = run_.benchmark().file_sets.find(use.value);
      if (set == run_.benchmark().file_sets.end()) continue;
      for (const auto& entry : set->second.entries) {
        const auto* copy = std::get_if<FileCopy>(&entry);
        if (copy == nullptr) continue;  // check/ has refused a prepare here
        bool active = true;
        TRY(evaluate_active(put_in(copy->active), run_.evaluator(), &active));
        if (!active) continue;
        TRY(list_files(*copy, lookup(), folder_, &files_));
      }
    }
    return Status::ok();
  }

  // Whether the folder was made from the same tables, commands and files.
  Status is_done(const std::vector<TextFile>& tables, bool* done) {
    Digest digest;
    for (const TextFile& table : tables) digest.add(table.name).add(table.text);
    for (const std::string& command : commands_) digest.add(command);
    for (const auto& [name, value] : changes_) digest.add(name).add(value ? "=" + *value : "");
    for (const PlannedFile& file : files_) {
      digest.add(file.target).add(file.source);
      TRY(add_content(file.source, digest));
    }
    digest_ = digest.hex();
    std::string made;
    *done =
        static_cast<bool>(read_own_file(root_, folder_ + "/" + kMade, &made)) && made == digest_;
    return Status::ok();
  }

  Status make(const std::vector<TextFile>& tables, ProcessRunner& processes) {
    TRY(remove_tree(work_));
    TRY(make_own_directories(root_, work_));
    for (const TextFile& table : tables)
      TRY(write_own_file(root_, work_ + "/" + table.name, table.text));
    for (const PlannedFile& file : files_) TRY(place_file(file, work_, Existing::must_be_same));
    for (size_t i = 0; i < commands_.size(); ++i) {
      if (commands_[i].empty()) continue;
      if (Status s = call(i, processes); !s) return keep_failed(s);
    }
    TRY(write_own_file(root_, work_ + "/" + kMade, digest_));
    TRY(remove_tree(folder_));
    return rename_own(root_, work_, folder_);
  }

 private:
  Lookup lookup() const {
    return [this](std::string_view name) -> const std::string* {
      const auto found =
          std::ranges::find_if(builtins_, [&](const auto& one) { return one.first == name; });
      return found == builtins_.end() ? nullptr : &found->second;
    };
  }
  std::string put_in(const std::string& text) const { return substitute(text, lookup()); }
  std::string put_in(const Text& text) const { return put_in(text.value); }

  Status call(size_t which, ProcessRunner& processes) const {
    ProcessSpec spec;
    spec.argv = {settings_.shell, "-c", commands_[which]};
    spec.directory = work_;
    spec.environment =
        entries(with_changes(with_programs(current_environment(), settings_.programs), changes_));
    spec.stdout_path = work_ + "/stdout";
    spec.stderr_path = work_ + "/stderr";
    int pid = 0;
    TRY(processes.start(spec, &pid));
    ProcessResult result;
    while (!processes.wait_any(std::chrono::milliseconds(-1), &result)) {
      if (processes.interrupted() == 0) continue;
      processes.kill_tree(pid, SIGKILL);
      processes.wait_any(std::chrono::milliseconds(-1), &result);
      return Status::error("interrupted");
    }
    if (result.status == 0) return Status::ok();
    std::string last(strip(last_lines(spec.stderr_path, 1)));
    if (!last.empty()) last = ": " + last;
    return Status::error(fmt::format("`{}` ended with exit code {}{}",
                                     step_.operations[which].command.value, result.status, last));
  }

  // Leaves the work for people to look at.
  Status keep_failed(const Status& why) const {
    const std::string kept = folder_ + ".failed";
    TRY(remove_tree(kept));
    TRY(rename_own(root_, work_, kept));
    return Status::error(why.message() + "; see " + kept);
  }

  const Settings& settings_;
  const Run& run_;
  const Step& step_;
  const std::vector<std::pair<std::string, std::string>> builtins_;
  const std::string root_, folder_;
  const std::string work_;  // where the folder is made anew
  std::vector<std::string> commands_;
  EnvironmentChanges changes_;
  std::vector<PlannedFile> files_;
  std::string digest_;
};

}  // namespace

int do_result_steps(const Settings& settings, const Run& run,
                    const std::vector<RenderedResult>& tables, bool unfinished) {
  std::unique_ptr<ProcessRunner> processes;
  std::optional<OneAtATime> lock;
  Status locked;
  std::vector<TextFile> files;
  int code = kFine;
  for (const Step& step : run.benchmark().steps) {
    if (has_workpackages(step)) continue;
    if (unfinished || settings.no_exec) {
      fmt::print(stderr, "note: step '{}' was not done: {}\n", step.name.value,
                 unfinished ? "the run has not ended" : "--no-exec allows no commands");
      continue;
    }
    if (!processes) {
      lock.emplace(absolute_path(run.directory().path), &locked);
      processes = make_process_runner();
      files = csv_files(tables);
    }
    ResultStep work(settings, run, step);
    bool done = false;
    Status status = locked ? work.find_files() : locked;
    if (status) status = work.is_done(files, &done);
    if (status && done) continue;
    run.journal().publish();  // a command may look at the run
    if (status) status = work.make(files, *processes);
    if (status) {
      if (!settings.quiet)
        fmt::print(stderr, "note: step '{}' is done: {}/result/{}\n", step.name.value,
                   run.directory().path, step.name.value);
      continue;
    }
    print_error(settings, fmt::format("step '{}': {}", step.name.value, status.message()));
    code = kFailed;
    if (processes->interrupted() > 0) break;
  }
  return code;
}

}  // namespace tally
