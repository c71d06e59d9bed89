#include "engine/cli/execution.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>

#include "engine/base/files.h"
#include "engine/cli/commands.h"
#include "engine/cli/fleet.h"
#include "engine/cli/prepare.h"
#include "engine/cli/runs.h"
#include "engine/cli/show_results.h"
#include "engine/cli/summary.h"
#include "engine/cli/terminal_output.h"
#include "engine/energy/gpu_devices.h"
#include "engine/execute/execute.h"
#include "engine/execute/jobs/job_table.h"
#include "engine/execute/machine_facts.h"
#include "engine/jube/jube_files.h"
#include "engine/results/judge/precision.h"
#include "engine/results/read/views.h"
#include "engine/workpackage/values.h"
#include "engine/workspace/process.h"

namespace tally {
namespace {

// Tally always shows the table and checks its references. JUBE's command does so only with -r.
bool wants_result(const Settings& settings, bool asked) {
  return asked || !settings.called_as_jube;
}

// Files, databases and syslog messages may need -r.
bool writes_result(const Benchmark& benchmark, bool asked) {
  return asked || benchmark.rules.results_without_option;
}

// Whether a benchmark has results to show.
bool has_results(const Benchmark& benchmark) {
  return !benchmark.results.empty();
}

// Such a run ends with waiting workpackages, as in JUBE. JUBE prints no warning.
void warn_of_blocked(const Settings& settings, const Benchmark& benchmark,
                     const RunSummary& summary, const Sources& sources) {
  Diagnostics diagnostics;
  for (const RunSummary::Blocked& blocked : summary.blocked) {
    const Step& step = benchmark.steps[static_cast<size_t>(blocked.step)];
    const bool gpus = std::string_view(blocked.by) == "gpu_slots";
    diagnostics.warning(
        step.name.mark,
        fmt::format(
            "step '{}': its shared command cannot run{}: it waits for all of the step's "
            "workpackages, and {} some of them from beginning before",
            step.name.value, gpus ? " here" : "",
            gpus ? "this machine's GPUs (gpu_slots) keep" : std::string(blocked.by) + " keeps"),
        gpus ? "continue where there are more GPUs, or give what is to be done once a step of its "
               "own"
             : fmt::format("leave {} out, or give what is to be done once a step of its own",
                           blocked.by));
  }
  print_diagnostics(settings, diagnostics, sources);
}

// Whether a workpackage failed before its commands: in a value, a file set or a substitution. JUBE
// aborts in that case.
bool has_failed_without_command(const Journal& journal) {
  std::vector<Journal::Stored> all;
  if (!journal.workpackages(&all)) return true;
  return std::ranges::any_of(all, [](const Journal::Stored& stored) {
    const Outcome& outcome = stored.workpackage.outcome;
    return outcome.state == State::failed && !is_failure_of_command(outcome.reason);
  });
}

// A row that others disturbed would then bear no mark.
void note_unwatched_gpus(const Settings& settings, const Facts& facts) {
  for (const auto& [name, value] : facts) {
    if (name == kUnwatchedGpus && !settings.quiet)
      fmt::print(
          stderr,
          "note: the GPUs of this machine are not watched for other programs and throttling: "
          "{}\n",
          value);
  }
}

// Ends repeats by the precision of what the run has measured so far.
class PreciseEnough final : public RepeatJudge {
 public:
  Status not_needed(const Run& run, std::vector<int>* workpackages) override {
    return repeats_not_needed(run.benchmark(), run.journal(), run.directory().path, run.evaluator(),
                              workpackages);
  }
};

// Executes what is left of the run. The journal keeps a record of the machine and of the jobs' use
// of it, which JUBE's files do not have.
Status execute_left(const Settings& settings, Run& run, FleetRepeats* fleet, RunSummary* summary) {
  const Benchmark& benchmark = run.benchmark();
  Journal& journal = run.journal();
  Parts parts;
  parts.on_interrupt = interrupt_question();
  PreciseEnough repeats;
  parts.repeats = &repeats;
  if (fleet != nullptr) parts.repeats = fleet;
  TerminalOutput output;
  parts.output = &output;
  Status status;
  std::unique_ptr<GpuDevices> gpus;
  if (benchmark.rules.machine_is_watched) {
    const Status no_gpus = GpuDevices::open(&gpus);
    parts.gpu_devices = gpus.get();
    const Facts facts =
        machine_facts(journal.run().home, gpus.get(), no_gpus ? std::string() : no_gpus.message());
    note_unwatched_gpus(settings, facts);
    status = journal.add_session(facts);
  }
  if (status) status = execute(run, settings, parts, summary);
  if (benchmark.rules.machine_is_watched && status && !summary->interrupted) {
    std::unique_ptr<Scheduler> scheduler;
    status = scheduler_of(journal, &scheduler);
    if (status)
      status = collect_job_use(journal, *scheduler,
                               std::chrono::seconds(shows_job_use(benchmark) ? 20 : 0));
  }
  if (const std::string load = load_average(); status && !load.empty())
    status = journal.add_fact("Load at end", load);
  return status;
}

// Says how the execution ended, and keeps it in JUBE's file.
int report_execution(const Settings& settings, const Run& run, const RunSummary& summary,
                     Status* status) {
  const Benchmark& benchmark = run.benchmark();
  const Status shown = print_summary(settings, run, summary);
  if (*status) *status = shown;
  warn_of_blocked(settings, benchmark, summary, run.input().sources);
  std::vector<Journal::Tally> states;
  if (*status) *status = run.journal().states(&states);
  const int nothing = *status && states.empty() ? report_nothing(benchmark, false) : kFine;
  if (!*status) print_error(settings, *status);
  if (Status s = write_workpackages_xml(benchmark, run.journal(), run.directory().path);
      !s && *status) {
    *status = s;
    print_error(settings, s);
  }
  return std::max(*status ? summary.exit_code() : kFailed, nothing);
}

// Whether an output was changed between the end of its workpackage and now. No command failed, but
// the table is not what the run measured.
bool any_changed(const std::vector<RenderedResult>& tables) {
  return std::ranges::any_of(tables, [](const RenderedResult& one) { return one.table.changed; });
}

int report_tables(const Settings& settings, Run& run, std::vector<RenderedResult>* tables) {
  ShowOptions options;
  std::vector<Sample> samples;
  options.request.write = writes_result(run.benchmark(), settings.result);
  options.shown = tables;
  if (run.benchmark().rules.values_are_kept && options.request.write) options.samples = &samples;
  int code = show_results(settings, {&run, 1}, options);
  if (any_changed(*tables)) code = std::max(code, kFailed);
  if (!settings.called_as_jube) run_on_fail(settings, run, *tables);
  (void)static_cast<bool>(run.keep_samples(samples));  // not if it belongs to another person
  return code;
}

// Analyses the run and shows its results, as far as the command or the workflow asks for it.
int report_results(const Settings& settings, Run& run, std::vector<JunitSuite>* junit) {
  const bool show = wants_result(settings, settings.result) && has_results(run.benchmark());
  // With -r JUBE analyses even if there is no result to show.
  const bool analyse = settings.analyse || (settings.called_as_jube && settings.result);
  if (!show && !analyse && junit == nullptr) return kFine;
  if (!read_definitions(settings, &run)) return kFailed;
  int code = kFine;
  std::vector<RenderedResult> tables;
  if (show) {
    code = report_tables(settings, run, &tables);
  } else if (size_t rows = 0; analyse && !analyse_run(settings, run, &rows)) {
    code = kFailed;
  }
  if (junit == nullptr) return code;
  const Status made = junit_suite(run.definitions(), run.journal(), tables, &junit->emplace_back());
  if (!made) print_error(settings, made);
  return made ? code : std::max(code, kFailed);
}

}  // namespace

Executed execute_run(const Settings& settings, Run& run, std::vector<JunitSuite>* junit) {
  RunSummary summary;
  std::unique_ptr<FleetRepeats> fleet;
  if (run.benchmark().fleet.is_tested() &&
      print_if_error(settings, FleetRepeats::make(run, &fleet)))
    return {kFailed};
  Status status = execute_left(settings, run, fleet.get(), &summary);
  const int executed = report_execution(settings, run, summary, &status);
  const bool interrupted = summary.interrupted;
  if (settings.called_as_jube && summary.stopped)
    return {executed, interrupted};  // JUBE ends at -e, without an analysis
  const bool gives_up = settings.called_as_jube && has_failed_without_command(run.journal());
  int shown = report_results(settings, run, junit);
  if (fleet) shown = std::max(shown, fleet->report(settings, run));
  // JUBE's exit code ignores failed commands. It only reports JUBE's own failures.
  if (settings.called_as_jube && status && !interrupted)
    return {gives_up || shown != kFine ? kFailed : kFine, false};
  return {std::max(executed, shown), interrupted};
}

int execute_part(const Settings& settings, Run& run) {
  RunSummary summary;
  Status status = execute_left(settings, run, nullptr, &summary);
  return report_execution(settings, run, summary, &status);
}

int report_nothing(const Benchmark& benchmark, bool dry) {
  bool excluded = false;
  std::string why = "its steps are not active, or their parameter sets contradict each other";
  if (benchmark.steps.empty()) why = "it has no step";
  for (const auto& [name, set] : benchmark.parameter_sets) {
    excluded = excluded || !set.where.empty();
  }
  if (excluded) why = "the rules under 'where' exclude every point";
  fmt::print(stderr, "{}: benchmark '{}' has no workpackages: {}\n",
             benchmark.rules.empty_run_is_error ? "error" : "warning", benchmark.name.value, why);
  if (benchmark.rules.empty_run_is_error && excluded && !dry)
    fmt::print(stderr, "hint: a dry run (-n) lists what is excluded, and by which rule\n");
  return benchmark.rules.empty_run_is_error ? kFailed : kFine;
}

namespace {

constexpr std::chrono::seconds kLongest{60};
constexpr size_t kMostCommands = 20;  // commands

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
    if (missed.on_fail.empty() || ++count_ > kMostCommands) return;
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
               std::min(count_, kMostCommands), count_ == 1 ? "" : "s", log_);
    if (count_ > kMostCommands)
      fmt::print(stderr, "note: on_fail: {} further rows missed a reference; nothing was started\n",
                 count_ - kMostCommands);
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
