// tally watch, tally status: how a run's jobs are.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "engine/cli/commands.h"
#include "engine/cli/input.h"
#include "engine/cli/runs.h"
#include "engine/execute/job_table.h"
#include "engine/execute/status_line.h"
#include "engine/journal/journal.h"

namespace tally {
namespace {

constexpr std::chrono::seconds between_looks{2};

// RUNNING, ERROR or FINISHED, as JUBE says it.
const char* word_of(const Journal& journal) {
  bool open = false;
  bool failed = false;
  for (const Journal::Tally& tally : journal.states()) {
    if (tally.count == 0) continue;
    if (tally.state == State::failed || tally.state == State::lost) {
      failed = true;
    } else if (!finished_well(tally.state)) {
      open = true;
    }
  }
  return open ? "RUNNING" : failed ? "ERROR" : "FINISHED";
}

Progress progress_of(const Journal& journal, const JobCounts& counts) {
  Progress progress;
  for (const Journal::Tally& tally : journal.states()) {
    progress.total += tally.count;
    if (finished_well(tally.state)) progress.done += tally.count;
    if (tally.state == State::failed) progress.failed += tally.count;
    if (tally.state == State::lost) progress.lost += tally.count;
    if (tally.state == State::waiting) progress.waiting += tally.count;
  }
  progress.jobs = counts.queued + counts.running;
  return progress;
}

// Shows how another engine's run goes until that engine has ended.
void watch_other(const RunDirectory& directory, Scheduler& scheduler, const std::string& holder) {
  StatusLine line(nullptr, false, false);
  if (!line.shown()) fmt::print("{}; its end is waited for\n", holder);
  std::fflush(stdout);
  while (run_holder(directory.path)) {
    std::unique_ptr<Journal> journal;
    if (line.shown() && Journal::open_read_only(directory.path, &journal)) {
      std::vector<JobView> views;
      JobCounts counts;
      const Status asked = jobs_of_run(*journal, scheduler, &views, &counts);
      Progress progress = progress_of(*journal, counts);
      if (!asked) progress.current = asked.message();
      line.update(progress, StatusLine::Clock::now(),
                  job_lines(views, line.table_rows(), line.table_columns(), std::time(nullptr)));
    }
    std::this_thread::sleep_for(between_looks);
  }
}

}  // namespace

int status_command(const Invocation& invocation, const RunsArgs& args) {
  std::vector<RunDirectory> runs = find_runs(invocation, args);
  if (runs.empty()) return kBadInput;
  std::unique_ptr<Scheduler> scheduler = make_slurm_scheduler();
  for (const RunDirectory& directory : runs) {
    std::unique_ptr<Journal> journal;
    if (Status s = Journal::open_read_only(directory.path, &journal); !s) {
      print_error(invocation, s.message());
      return kBadInput;
    }
    const bool at_work = run_holder(directory.path).has_value();
    fmt::print("{}\n", at_work ? "RUNNING" : word_of(*journal));
    if (invocation.as_jube) continue;
    std::vector<JobView> views;
    JobCounts counts;
    const Status asked = jobs_of_run(*journal, *scheduler, &views, &counts);
    if (views.empty() && counts.ended == 0) continue;
    fmt::print("jobs: {}\n", counts.text());
    const size_t most = invocation.verbose > 0 ? 0 : 50;
    for (const std::string& line : job_lines(views, most, 0, std::time(nullptr))) {
      fmt::print("{}\n", line);
    }
    if (!asked) print_error(invocation, asked.message(), "this is what the journal knows");
  }
  return kFine;
}

int watch_command(const Invocation& invocation, const ContinueArgs& args) {
  std::vector<RunDirectory> runs = find_runs(invocation, args.runs);
  if (runs.empty()) return kBadInput;
  std::unique_ptr<Scheduler> scheduler = make_slurm_scheduler();
  for (const RunDirectory& directory : runs) {
    if (const auto holder = run_holder(directory.path)) {
      watch_other(directory, *scheduler, *holder);
    }
  }
  // Nobody is at it now: followed here, to its tables.
  return continue_command(invocation, args);
}

}  // namespace tally
