#include "engine/cli/on_fail.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <map>

#include "engine/base/files.h"
#include "engine/cli/runs.h"
#include "engine/workspace/process.h"

namespace tally {
namespace {

constexpr std::chrono::seconds kLongest{60};
constexpr size_t kMost = 20;  // commands

// The folders in which the run's workpackages worked.
std::map<int, std::string> work_folders(const Run& run) {
  std::map<int, std::string> folders;
  std::vector<Journal::Stored> all;
  if (!run.journal().workpackages(&all)) return folders;
  for (const Journal::Stored& one : all)
    folders[one.workpackage.id] = work_folder(run.directory(), one);
  return folders;
}

class Collector {
 public:
  Collector(const Settings& settings, const Run& run)
      : settings_(settings),
        run_(run),
        log_(absolute_path(run.directory().path) + "/result/on_fail.log") {}

  void add(const std::string& table, const MissedReference& missed) {
    if (missed.on_fail.empty() || ++count_ > kMost) return;
    if (count_ == 1) {
      run_.journal().publish();  // a command may look at the run
      folders_ = work_folders(run_);
      if (!ready(make_directories(absolute_path(run_.directory().path) + "/result"))) return;
      processes_ = make_process_runner();
    }
    if (!processes_) return;
    if (!ready(append_file(log_, fmt::format("{} {}: {}\n$ {}\n", time_stamp(), table, missed.text,
                                             missed.on_fail))))
      return;
    start(table, missed);
  }

  void finish() const {
    if (count_ == 0 || !processes_) return;
    fmt::print(stderr, "note: on_fail: the output of {} command{} is in {}\n",
               std::min(count_, kMost), count_ == 1 ? "" : "s", log_);
    if (count_ > kMost)
      fmt::print(stderr, "note: on_fail: {} further rows missed a reference; nothing was started\n",
                 count_ - kMost);
  }

 private:
  bool ready(const Status& status) const {
    if (!status) fmt::print(stderr, "warning: on_fail: {}\n", status.message());
    return static_cast<bool>(status);
  }

  void start(const std::string& table, const MissedReference& missed) {
    const auto folder = folders_.find(missed.workpackage);
    ProcessSpec spec;
    spec.argv = {settings_.shell, "-c", missed.on_fail};
    spec.directory = folder == folders_.end() ? run_.directory().path : folder->second;
    for (char** entry = environ; *entry != nullptr; ++entry) spec.environment.emplace_back(*entry);
    spec.environment.push_back("TALLY_REFERENCE=" + missed.text);
    spec.environment.push_back("TALLY_TABLE=" + table);
    spec.stdout_path = log_;
    spec.merge = true;
    int pid = 0;
    if (!ready(processes_->start(spec, &pid))) return;
    ProcessResult result;
    bool ended = processes_->wait_any(kLongest, &result);
    const bool late = !ended;
    if (late) {
      processes_->kill_tree(pid, SIGKILL);
      ended = processes_->wait_any(kLongest, &result);
    }
    if (late) {
      fmt::print(stderr, "warning: on_fail: '{}' was ended: it took longer than {} s\n",
                 missed.on_fail, kLongest.count());
    } else if (result.status != 0) {
      fmt::print(stderr, "warning: on_fail: '{}' ended with exit code {}\n", missed.on_fail,
                 result.status);
    }
  }

  const Settings& settings_;
  const Run& run_;
  const std::string log_;
  std::map<int, std::string> folders_;
  std::unique_ptr<ProcessRunner> processes_;
  size_t count_ = 0;
};

}  // namespace

void run_on_fail(const Settings& settings, const Run& run,
                 const std::vector<RenderedResult>& tables) {
  Collector collector(settings, run);
  for (const RenderedResult& one : tables) {
    for (const MissedReference& missed : one.table.missed) collector.add(one.name, missed);
    for (const MissedReference& missed : one.table.warned) collector.add(one.name, missed);
  }
  collector.finish();
}

}  // namespace tally
