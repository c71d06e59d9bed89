// tally run, tally continue.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <deque>
#include <iostream>
#include <set>
#include <utility>

#include "engine/base/duration.h"
#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/cli/commands.h"
#include "engine/cli/execution.h"
#include "engine/cli/junit_cases.h"
#include "engine/cli/prepare.h"
#include "engine/cli/removal.h"
#include "engine/cli/runs.h"
#include "engine/cli/summary.h"
#include "engine/cli/version.h"
#include "engine/execute/setup_reuse.h"
#include "engine/expand/evaluator.h"
#include "engine/jube/jube_files.h"
#include "engine/plan/generated_files.h"
#include "engine/plan/plan.h"
#include "engine/plan/training_plans.h"
#include "engine/results/judge/fleet.h"
#include "engine/run/run_directory.h"
#include "engine/workpackage/values.h"

namespace tally {
namespace {

std::optional<double> node_hours_limit(const RunArgs& args) {
  return args.max_node_hours < 0 ? std::nullopt : std::optional<double>(args.max_node_hours);
}

int dry_run(const Settings& settings, const RunArgs& args, PlannedRun& planned) {
  const Benchmark& benchmark = planned.run.benchmark();
  Expander& expander = planned.run.expander();
  const Plan& plan = planned.plan;
  const int nothing = plan.workpackages.empty() ? report_nothing(benchmark, true) : kFine;
  if (args.script >= 0 && static_cast<size_t>(args.script) >= plan.workpackages.size()) {
    print_error(settings, fmt::format("--script: there is no workpackage {}", args.script),
                plan.workpackages.empty()
                    ? "the plan has none"
                    : fmt::format("the plan has 0 to {}", plan.workpackages.size() - 1));
    return kBadInput;
  }
  PlanPrint print;
  print.script_of = args.script;
  print.scripts = [&](const Workpackage& workpackage) {
    std::string folder;
    std::vector<FileBytes> files;
    std::vector<std::pair<std::string, std::string>> texts;
    Status made = generated_files(benchmark, workpackage, expander, &folder, &files);
    if (!made) print_error(settings, made.message());
    for (FileBytes& one : files) texts.emplace_back(one.path, std::move(one.bytes));
    for (const std::vector<int>& members : planned.estimate.packs) {
      if (!contains(members, workpackage.id)) continue;
      GeneratedPack pack{folder, {}};
      made = generated_pack(benchmark, plan.workpackages, members, expander, &pack);
      if (!made) print_error(settings, made.message());
      texts.emplace_back("../../" + pack.folder + "/" + pack.script.path,
                         std::move(pack.script.bytes));
    }
    return texts;
  };
  if (args.all || settings.verbose > 0) print.most = static_cast<size_t>(-1);
  print.everything = settings.verbose > 0;
  if (args.script < 0) {
    print.remarks = predict_reuse(planned, settings);
  }
  print_plan(plan, expander, planned.run.texts(), print, std::cout);
  if (args.script < 0 && !settings.no_exec) {
    const std::string own = program_directory();
    print_training_plans(plan, expander, {own, own + "/../lib/tally"}, print.most, std::cout);
  }
  std::cout.flush();
  if (refuse(settings, planned, node_hours_limit(args), "a run would submit nothing")) {
    return kBadInput;
  }
  const bool fails = std::ranges::any_of(plan.workpackages, [](const Workpackage& workpackage) {
    return workpackage.outcome.state == State::failed;
  });
  return fails ? kFailed : nothing;
}

// The expected id and folder of the run. They are certain only when the folder is created.
std::optional<RunInfo> expected_run(const Settings& settings, const RunArgs& args,
                                    const Benchmark& benchmark) {
  const std::string outpath = outpath_of(benchmark, args.outpath);
  int id = 0;
  if (print_if_error(settings, next_run_id(outpath, &id))) return std::nullopt;
  if (!args.ids.empty()) parse_id(args.ids.front(), &id);
  return run_info(benchmark, id, outpath + "/" + padded_id(id),
                  local_time(std::time(nullptr), 'T'));
}

// The number that the command gives to its run `which`, counted over all files. -1: none.
bool read_id(const Settings& settings, const RunArgs& args, size_t which, int* id) {
  *id = -1;
  if (which >= args.ids.size() || args.ids[which] == "last" || args.ids[which] == "all")
    return true;
  if (parse_id(args.ids[which], id) && *id >= 0) return true;
  print_error(settings,
              fmt::format("'{}' is not a valid id for a new run: use a number", args.ids[which]));
  return false;
}

// Says which runs a command left when it was interrupted.
void note_not_begun(const Settings& settings, size_t runs) {
  if (runs > 0)
    print_error(settings, fmt::format("interrupted: {} further run{} not begun", runs,
                                      runs == 1 ? " was" : "s were"));
}

// With `--junit -` standard output is the report's alone, and all else goes to standard error.
class ReportStream {
 public:
  explicit ReportStream(const std::string& path) : path_(path) {
    if (path != "-") return;
    flush();
    kept_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  ~ReportStream() { restore(); }
  ReportStream(const ReportStream&) = delete;
  ReportStream& operator=(const ReportStream&) = delete;

  Status write(const std::string& report) {
    if (kept_ < 0) return write_named_file(path_, report);
    restore();
    std::fwrite(report.data(), 1, report.size(), stdout);
    return Status::ok();  // whether all output was written is seen at the program's end
  }

 private:
  static void flush() {
    std::cout.flush();
    std::fflush(stdout);
  }
  void restore() {
    if (kept_ < 0) return;
    flush();
    ::dup2(kept_, STDOUT_FILENO);
    ::close(kept_);
    kept_ = -1;
  }

  std::string path_;
  int kept_ = -1;  // standard output; -1: it is used as it is
};

// Makes the run and executes it.
Executed start(const Settings& settings, const RunArgs& args, size_t which, Run& run,
               std::vector<JunitSuite>* junit) {
  const Benchmark& benchmark = run.benchmark();
  NewRun what;
  if (!read_id(settings, args, which, &what.id)) return {kBadInput};
  what.outpath = outpath_of(benchmark, args.outpath);
  what.start =
      which == 0 ? run.info().start : local_time(std::time(nullptr), 'T');  // others end before it
  what.comment = args.with_comment ? one_line(args.comment) : benchmark.comment;
  what.comment_of_command = args.with_comment;
  what.version = kVersion;
  what.include_path = args.input.include_path;
  if (print_if_error(settings, run.create(what)))
    return {run.directory().path.empty() ? kBadInput : kFailed};
  const std::vector<std::string>& tags = run.journal().run().tags;
  note_command(run.directory().path, "parse",
               fmt::format("{} read by tally {}{}{}", run.input().path, kVersion,
                           tags.empty() ? "" : ", tags: ", join(tags, " ")));
  if (!settings.quiet) print_banner(settings, run);
  return execute_run(settings, run, junit);
}

bool has_outpath(const Settings& settings, const RunArgs& args, const Input& input,
                 const Benchmark& benchmark) {
  if (settings.called_as_jube && outpath_of(benchmark, args.outpath, false, "").empty()) {
    print_error(settings, "Missing attribute 'outpath' in <benchmark>",
                "give it one, or say where runs are to lie with -o");
    return false;
  }
  const std::string unknown = unknown_variable(normal_path(expand_path(benchmark.outpath.value)));
  if (unknown.empty() || !args.outpath.empty()) return true;
  Diagnostics diagnostics;
  diagnostics.error(benchmark.outpath.mark,
                    fmt::format("outpath: the environment has no variable '{}'", unknown),
                    "parameters and $jube_... are not known here; -o names another folder");
  print_diagnostics(settings, diagnostics, input.sources);
  return false;
}

// Reads and checks all files. Returns false if one cannot be run, or if there are too many ids.
bool read_files(const Settings& settings, const RunArgs& args, const PrepareOptions& options,
                std::vector<std::unique_ptr<PreparedFile>>* files) {
  size_t benchmarks = 0;
  for (const std::string& path : args.files) {
    files->push_back(prepare_file(settings, path, options));
    if (!files->back()) return false;
    benchmarks += files->back()->input->workflow->benchmarks.size();
  }
  if (args.ids.size() <= benchmarks) return true;
  print_error(settings,
              fmt::format("--id: {} ids for {} run{}", args.ids.size(), benchmarks,
                          benchmarks == 1 ? "" : "s"),
              "one id a benchmark, in the order of the files");
  return false;
}

// Plans each benchmark of the files. A dry run shows the plans; otherwise *runs are to be started.
int plan_all(const Settings& settings, const RunArgs& args, const PrepareOptions& options,
             std::deque<Run>* runs) {
  std::vector<std::unique_ptr<PreparedFile>> files;
  if (!read_files(settings, args, options, &files)) return kBadInput;
  int code = kFine;
  for (const auto& file : files) {
    for (const Benchmark& benchmark : file->input->workflow->benchmarks) {
      if (!has_outpath(settings, args, *file->input, benchmark)) return kBadInput;
      const std::optional<RunInfo> run = expected_run(settings, args, benchmark);
      if (!run) return kBadInput;
      const auto planned = plan_run(settings, *file, benchmark, *run, options);
      if (!planned) return kBadInput;
      if (args.dry_run) {
        code = std::max(code, dry_run(settings, args, *planned));
        continue;
      }
      if (!announce_jobs(settings, *planned, node_hours_limit(args))) return kBadInput;
      // Others start later, so that what the plan knows of them does not hold.
      if (!runs->empty()) {
        runs->emplace_back(file->input, benchmark, planned->run.info(), file->evaluator);
        continue;
      }
      start_with_plan(*planned);
      runs->push_back(std::move(planned->run));
    }
  }
  return code;
}

}  // namespace

int run_command(const Settings& settings, const RunArgs& args) {
  PrepareOptions options;
  options.input = args.input;
  options.needs_plan = args.dry_run;
  ReportStream report(args.junit);
  std::deque<Run> runs;  // all are checked before the first one starts
  int code = plan_all(settings, args, options, &runs);
  if (args.dry_run || code != kFine) return code;
  if (const Status can = can_write_report(args.junit); !args.junit.empty() && !can) {
    print_error(settings, can.message(), "nothing was started; give --junit another path");
    return kBadInput;
  }
  std::vector<JunitSuite> suites;
  bool interrupted = false;
  for (size_t which = 0; !runs.empty() && !interrupted; ++which, runs.pop_front()) {
    const Executed one =
        start(settings, args, which, runs.front(), args.junit.empty() ? nullptr : &suites);
    code = std::max(code, one.code);
    interrupted = one.interrupted;
  }
  note_not_begun(settings, runs.size());
  if (args.junit.empty()) return code;
  const Status written = report.write(junit_document(suites));
  if (!written) print_error(settings, written);
  return written ? code : std::max(code, kFailed);
}

namespace {

// Resets the run's failed workpackages. A job whose fate is unknown may still write, so that a lost
// workpackage is left for a person.
bool take_failed_back(const Settings& settings, const Run& run) {
  std::vector<Journal::Stored> workpackages;
  Status status = run.journal().workpackages(&workpackages);
  std::set<int> failed;
  for (const Journal::Stored& stored : workpackages)
    if (stored.workpackage.outcome.state == State::failed) failed.insert(stored.workpackage.id);
  if (status) status = remove_workpackages(&run.journal(), run.directory().path, failed);
  if (!status) print_error(settings, status);
  if (status && failed.empty() && !settings.quiet)
    fmt::print(stderr, "note: {}: nothing has failed\n", run.directory().path);
  return static_cast<bool>(status);
}

// Keeps the new budget of a fleet for this session and later ones.
bool take_budget(const Settings& settings, const Run& run, double budget) {
  if (run.benchmark().fleet.is_tested())
    return !print_if_error(settings,
                           run.journal().add_fact(kBudgetFact, fmt::format("{}", budget)));
  print_error(settings, fmt::format("--budget: run {} is no fleet's", run.directory().id));
  return false;
}

void note_goes_on_as_begun(const Settings& settings, const Run& run) {
  if (settings.called_as_jube || !run.benchmark().rules.values_are_kept) return;
  const std::string file = changed_source(run.input(), run.journal().run(), run.directory().path);
  if (file.empty()) return;
  fmt::print(stderr,
             "note: {} has changed since; run {} goes on as it was begun. `{} run` does what the "
             "file says today\n",
             file, run.directory().id, settings.command);
}

}  // namespace

int continue_command(const Settings& settings, const ContinueArgs& args) {
  return continue_runs(settings, args, nullptr);
}

int continue_runs(const Settings& settings, const ContinueArgs& args,
                  const WaitForHolder& wait_for_holder) {
  const std::vector<RunDirectory> runs = find_runs(settings, args.runs);
  if (runs.empty()) return kBadInput;
  RunGroup group;  // its folders belong to the group already
  if (print_if_error(settings, RunGroup::from_environment(&group))) return kBadInput;
  int code = kFine;
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunDirectory& directory = runs[i];
    while (wait_for_holder && wait_for_holder(directory)) continue;
    const std::unique_ptr<Run> run = open_run(settings, directory, Run::Access::write);
    if (!run || (args.failed && !take_failed_back(settings, *run)) ||
        (args.budget >= 0 && !take_budget(settings, *run, args.budget))) {
      code = std::max(code, kFailed);
      continue;
    }
    note_goes_on_as_begun(settings, *run);
    note_command(directory.path, "continue", "continued; see run.log");
    if (!settings.quiet) print_banner(settings, *run);
    const Executed one = execute_run(settings, *run, nullptr);
    code = std::max(code, one.code);
    if (!one.interrupted) continue;
    note_not_begun(settings, runs.size() - i - 1);
    break;
  }
  return code;
}

}  // namespace tally
