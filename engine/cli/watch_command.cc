// tally watch, tally status: the state of a run's jobs.
#include <dirent.h>
#include <fmt/format.h>

#include <cctype>
#include <chrono>
#include <ctime>
#include <string_view>
#include <thread>

#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/execution.h"
#include "engine/cli/prepare.h"
#include "engine/cli/runs.h"
#include "engine/cli/terminal_output.h"
#include "engine/execute/jobs/job_table.h"
#include "engine/execute/status_line.h"
#include "engine/journal/journal.h"

namespace tally {
namespace {

constexpr std::chrono::seconds between_looks{2};

// The facts that are known of a run and of its jobs.
struct Sight {
  std::vector<Journal::Tally> states;
  bool has_end = false;  // an engine has come to the end of its work on it
  bool at_work = false;  // an engine holds it
  std::vector<JobView> jobs;
  JobCounts counts;
  Status asked;  // whether the scheduler has answered
};

Status look_at_run(const Settings& settings, const RunDirectory& directory, const Journal& journal,
                   Sight* sight) {
  TRY(journal.states(&sight->states));
  TRY(journal.has_end(&sight->has_end));
  sight->at_work = run_holder(directory.path).has_value();
  if (settings.called_as_jube) return Status::ok();
  std::unique_ptr<Scheduler> scheduler;
  TRY(scheduler_of(journal, &scheduler));
  sight->asked = jobs_of_run(journal, *scheduler, &sight->jobs, &sight->counts);
  return Status::ok();
}

// Returns RUNNING, ERROR or FINISHED as JUBE does. RUNNING means that something has not ended.
// INTERRUPTED means that something has not ended, but no engine is running and nothing proceeds
// without one.
const char* word_of(const Settings& settings, const Sight& sight) {
  bool open = false, waiting = false, failed = false;
  for (const Journal::Tally& tally : sight.states) {
    if (tally.count == 0) continue;
    if (has_failed(tally.state)) {
      failed = true;
    } else if (tally.state == State::waiting) {
      waiting = true;
    } else if (!finished_well(tally.state)) {
      open = true;
    }
  }
  if (sight.at_work || (waiting && !open)) return "RUNNING";
  if (!open && failed) return "ERROR";
  const bool recorded = settings.called_as_jube || !sight.states.empty() || sight.has_end;
  if (!open) return recorded ? "FINISHED" : "INTERRUPTED";
  const JobCounts& jobs = sight.counts;
  const bool in_queue = jobs.queued + jobs.running > 0 || (!sight.asked && jobs.to_submit == 0);
  return settings.called_as_jube || waiting || in_queue ? "RUNNING" : "INTERRUPTED";
}

// Reports finished workpackages whose folders, and thus their output, are gone. The journal alone
// would say FINISHED.
Status find_folders(const Settings& settings, const Journal& journal,
                    const std::vector<Journal::Tally>& states, const RunDirectory& directory,
                    bool* all_there) {
  *all_there = true;
  int finished = 0;
  for (const Journal::Tally& tally : states) {
    if (finished_well(tally.state)) finished += tally.count;
  }
  // The workpackages are read only if folders are missing, because there may be a hundred thousand.
  int there = 0;
  Status listed = each_entry(directory.path, [&there](const dirent& entry) {
    const std::string_view name = entry.d_name;
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0 && name.find('_') != name.npos)
      ++there;
  });
  if (!listed) return listed;
  if (there >= finished) return Status::ok();
  std::vector<Journal::Stored> workpackages;
  TRY(journal.workpackages(&workpackages));
  std::vector<std::string> gone;
  for (const Journal::Stored& stored : workpackages) {
    const std::string folder = directory.path + "/" + stored.directory;
    if (!finished_well(stored.workpackage.outcome.state) || stored.directory.empty()) continue;
    bool is_there = false;
    TRY(path_exists(folder, &is_there));
    if (!is_there) gone.push_back(stored.directory);
  }
  if (gone.empty()) return Status::ok();
  *all_there = false;
  const size_t count = gone.size();
  constexpr size_t kMost = 5;
  if (count > kMost) {
    gone.resize(kMost);
    gone.emplace_back("...");
  }
  print_error(
      settings,
      fmt::format("{} finished workpackage{} no folder any more in '{}': {}", count,
                  count == 1 ? " has" : "s have", directory.path, join(gone, ", ")),
      fmt::format("`{} remove {} --id {} -w ID` and `continue` run one again", settings.command,
                  shell_quote(directory.path.substr(0, directory.path.rfind('/'))), directory.id));
  return Status::ok();
}

RunProgress progress_of(const std::vector<Journal::Tally>& states, const JobCounts& counts) {
  RunProgress progress;
  for (const Journal::Tally& tally : states) {
    progress.total += tally.count;
    if (finished_well(tally.state)) progress.done += tally.count;
    if (tally.state == State::failed) progress.failed += tally.count;
    if (tally.state == State::lost) progress.lost += tally.count;
    if (tally.state == State::waiting) progress.waiting += tally.count;
  }
  progress.jobs = counts.queued + counts.running;
  return progress;
}

// Shows the progress of another engine's run until that engine has ended.
void watch_other(const RunDirectory& directory, const std::string& holder) {
  TerminalOutput output;
  StatusLine line(&output, false, false);
  if (!line.shown()) fmt::print("{}; its end is waited for\n", holder);
  std::fflush(stdout);
  while (run_holder(directory.path)) {
    std::unique_ptr<Journal> journal;
    std::vector<Journal::Tally> states;
    std::unique_ptr<Scheduler> scheduler;
    if (line.shown() && Journal::open_read_only(directory.path, &journal) &&
        journal->states(&states) && scheduler_of(*journal, &scheduler)) {
      std::vector<JobView> views;
      JobCounts counts;
      const Status asked = jobs_of_run(*journal, *scheduler, &views, &counts);
      RunProgress progress = progress_of(states, counts);
      if (!asked) progress.current = asked.message();
      line.update(progress, StatusLine::Clock::now(),
                  job_lines(views, line.table_rows(), line.table_columns(), std::time(nullptr)));
    }
    std::this_thread::sleep_for(between_looks);
  }
}

}  // namespace

int status_command(const Settings& settings, const RunsArgs& args) {
  std::vector<RunDirectory> runs = find_runs(settings, args);
  if (runs.empty()) return kBadInput;
  int code = kFine;
  for (const RunDirectory& directory : runs) {
    std::unique_ptr<Journal> journal;
    Sight sight;
    Status status = Journal::open_read_only(directory.path, &journal);
    if (status) status = look_at_run(settings, directory, *journal, &sight);
    if (!status) {
      print_error(settings, status);
      return kBadInput;
    }
    const std::string word = word_of(settings, sight);
    fmt::print("{}\n", word);
    if (settings.called_as_jube) continue;
    bool all_there = true;
    if (print_if_error(settings,
                       find_folders(settings, *journal, sight.states, directory, &all_there)))
      return kBadInput;
    if (!all_there) code = kFailed;
    if (word == "INTERRUPTED") {
      fmt::print(stderr, "hint: `{} continue {} --id {}` resumes it\n", settings.command,
                 shell_quote(directory.path.substr(0, directory.path.rfind('/'))), directory.id);
    }
    if (sight.jobs.empty() && sight.counts.ended == 0) continue;
    fmt::print("jobs: {}\n", sight.counts.text());
    const size_t most = settings.verbose > 0 ? 0 : 50;
    for (const std::string& line : job_lines(sight.jobs, most, 0, std::time(nullptr)))
      fmt::print("{}\n", line);
    if (!sight.asked)
      print_error(settings, sight.asked.message(), "this is what the journal knows");
  }
  return code;
}

int watch_command(const Settings& settings, const RunsArgs& args) {
  const auto wait_for_holder = [&](const RunDirectory& directory) {
    const auto holder = run_holder(directory.path);
    if (holder) watch_other(directory, *holder);
    return holder.has_value();
  };
  // Once no engine holds the run, this one follows it to its end and shows the tables.
  return continue_runs(settings, {args, false}, wait_for_holder);
}

}  // namespace tally
