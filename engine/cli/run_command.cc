// tally run, tally continue.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iostream>

#include "engine/base/path_text.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/interrupt.h"
#include "engine/cli/job_plan.h"
#include "engine/cli/junit.h"
#include "engine/cli/on_fail.h"
#include "engine/cli/prepare.h"
#include "engine/cli/results.h"
#include "engine/cli/summary.h"
#include "engine/cli/version.h"
#include "engine/energy/gpu_devices.h"
#include "engine/execute/execute.h"
#include "engine/execute/jobs/job_use.h"
#include "engine/execute/machine_facts.h"
#include "engine/execute/setup_reuse.h"
#include "engine/expand/evaluator.h"
#include "engine/jube/group.h"
#include "engine/jube/jube_files.h"
#include "engine/plan/estimate.h"
#include "engine/plan/generated_files.h"
#include "engine/plan/plan.h"
#include "engine/plan/training_plans.h"
#include "engine/results/precision.h"
#include "engine/results/views.h"
#include "engine/workpackage/values.h"

namespace tally {
namespace {

std::string start_time() {
  std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local);
  return text;
}

// Tally always shows the table and checks its references. JUBE's command does so only with -r.
bool wants_result(const Invocation& invocation, bool asked) {
  return asked || !invocation.as_jube;
}

// Files, databases and syslog messages are written without -r only for files in Tally's own
// language. For files in JUBE's language they need -r.
bool writes_result(const Benchmark& benchmark, bool asked) {
  return asked || !benchmark.as_jube;
}

// Whether a benchmark has results to show.
bool has_results(const Benchmark& benchmark) {
  return !benchmark.results.empty();
}

Status make_run_directory(const std::string& outpath, const std::vector<std::string>& ids,
                          size_t which, RunDirectory* out) {
  int id = 0;
  if (which >= ids.size() || ids[which] == "last" || ids[which] == "all") {
    return create_run_directory(outpath, out);
  }
  if (!parse_id(ids[which], &id) || id < 0) {
    return Status::error(
        fmt::format("'{}' is not a valid id for a new run: use a number", ids[which]));
  }
  if (Status s = make_directories(outpath); !s) return s;
  std::string path = outpath + "/" + padded_id(id);
  if (::mkdir(path.c_str(), 0777) != 0) {
    return Status::error(errno == EEXIST
                             ? fmt::format("Benchmark directory \"{}\" already exists", path)
                             : fmt::format("cannot make '{}': {}", path, std::strerror(errno)));
  }
  *out = {id, path};
  return Status::ok();
}

std::optional<double> node_hours_limit(const RunArgs& args) {
  return args.max_node_hours < 0 ? std::nullopt : std::optional<double>(args.max_node_hours);
}

// A benchmark without any workpackage is a mistake: its table is empty, and no reference can fail.
// JUBE's files end as JUBE does, with code 0. Returns the exit code.
int report_nothing(const Benchmark& benchmark, bool dry) {
  bool excluded = false;
  std::string why = "its steps are not active, or their parameter sets contradict each other";
  if (benchmark.steps.empty()) why = "it has no step";
  for (const auto& [name, set] : benchmark.parameter_sets) {
    excluded = excluded || !set.where.empty();
  }
  if (excluded) why = "the rules under 'where' exclude every point";
  fmt::print(stderr, "{}: benchmark '{}' has no workpackages: {}\n",
             benchmark.as_jube ? "warning" : "error", benchmark.name.value, why);
  if (!benchmark.as_jube && excluded && !dry)
    fmt::print(stderr, "hint: a dry run (-n) lists what is excluded, and by which rule\n");
  return benchmark.as_jube ? kFine : kFailed;
}

// As in JUBE, such a run ends with waiting workpackages. JUBE prints no warning.
void warn_of_blocked(const Invocation& invocation, const Benchmark& benchmark,
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
  print_diagnostics(invocation, diagnostics, sources);
}

int dry_run(const Invocation& invocation, const RunArgs& args, PreparedBenchmark& prepared) {
  const Plan& plan = prepared.plan;
  const int nothing = plan.workpackages.empty() ? report_nothing(prepared.benchmark, true) : kFine;
  if (args.script >= 0 && static_cast<size_t>(args.script) >= plan.workpackages.size()) {
    print_error(invocation, fmt::format("--script: there is no workpackage {}", args.script),
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
    Status made =
        generated_files(prepared.benchmark, workpackage, prepared.expander, &folder, &files);
    if (!made) print_error(invocation, made.message());
    for (FileBytes& one : files) texts.emplace_back(one.path, std::move(one.bytes));
    for (const std::vector<int>& members : prepared.estimate.packs) {
      if (std::find(members.begin(), members.end(), workpackage.id) == members.end()) continue;
      FileBytes pack;
      made = generated_pack(prepared.benchmark, plan.workpackages, members, prepared.expander,
                            &folder, &pack);
      if (!made) print_error(invocation, made.message());
      texts.emplace_back("../../" + folder + "/" + pack.path, std::move(pack.bytes));
    }
    return texts;
  };
  if (args.all || invocation.verbose > 0) print.most = static_cast<size_t>(-1);
  if (args.script < 0) {
    print.remarks = predict_reuse(prepared.benchmark, prepared.expander, plan.workpackages,
                                  absolute_path(prepared.expander.run().rundir + "/.."), args.fresh,
                                  shell_of_commands());
  }
  print_plan(plan, prepared.expander, prepared.pool, print, std::cout);
  if (args.script < 0 && !invocation.no_exec) {
    const std::string own = program_directory();
    print_training_plans(plan, prepared.expander, {own, own + "/../lib/tally"}, print.most,
                         std::cout);
  }
  std::cout.flush();
  if (refuse(invocation, prepared, node_hours_limit(args), "a run would submit nothing")) {
    return kBadInput;
  }
  const bool fails = std::any_of(
      plan.workpackages.begin(), plan.workpackages.end(),
      [](const Workpackage& workpackage) { return workpackage.outcome.state == State::failed; });
  return fails ? kFailed : nothing;
}

struct Execution {
  int jobs = 1;
  bool exit_on_error = false, hide_animation = false, no_wait = false;
  bool analyse = false, result = false;
  bool fresh = false;
  std::vector<JunitSuite>* junit = nullptr;  // gets the run's, if given
};

// Whether a workpackage failed before its commands: in a value, a file set or a substitution. JUBE
// aborts in that case.
bool has_failed_without_command(const Journal& journal) {
  std::vector<Journal::Stored> all;
  if (!journal.workpackages(&all)) return true;
  return std::any_of(all.begin(), all.end(), [](const Journal::Stored& stored) {
    const Outcome& outcome = stored.workpackage.outcome;
    return outcome.state == State::failed && !is_failure_of_command(outcome.reason);
  });
}

// A row that others disturbed would then bear no mark.
void note_unwatched_gpus(const Invocation& invocation, const Facts& facts) {
  for (const auto& [name, value] : facts) {
    if (name == kUnwatchedGpus && !invocation.quiet)
      fmt::print(
          stderr,
          "note: the GPUs of this machine are not watched for other programs and throttling: "
          "{}\n",
          value);
  }
}

int execute_run(const Invocation& invocation, Input& input, const Benchmark& benchmark,
                const RunDirectory& directory, std::unique_ptr<Journal> journal,
                const Execution& execution, Evaluator& evaluator) {
  const RunRecord& record = journal->run();
  RunInfo info = run_info(benchmark, record.id, directory.path, record.start);
  RunOptions options;
  options.jobs = std::max(1, execution.jobs);
  options.exit_on_error = execution.exit_on_error;
  options.hide_animation = execution.hide_animation || invocation.quiet;
  options.verbose = invocation.verbose > 0;
  options.show_output = invocation.verbose > 1;
  options.wait_for_jobs = !execution.no_wait;
  options.fresh = execution.fresh;
  options.on_interrupt = interrupt_question();
  options.shell = shell_of_commands();
  options.programs = invocation.programs;
  options.evaluator = &evaluator;
  options.not_needed = [&](const Journal& so_far, std::vector<int>* ids) {
    return repeats_not_needed(benchmark, so_far, directory.path, evaluator, ids);
  };
  TextPool pool;
  Expander expander(benchmark, info, evaluator, pool, input.tags());
  RunSummary summary;
  journal->name_places(&input.sources);
  Status status;
  std::unique_ptr<GpuDevices> gpus;
  if (!benchmark.as_jube) {
    const Status no_gpus = GpuDevices::open(&gpus);
    options.gpu_devices = gpus.get();
    const Facts facts =
        machine_facts(record.home, gpus.get(), no_gpus ? std::string() : no_gpus.message());
    note_unwatched_gpus(invocation, facts);
    status = journal->add_session(facts);
  }
  if (status)
    status = execute(benchmark, expander, pool, *journal, directory.path, options, &summary);
  if (!benchmark.as_jube && status && !summary.interrupted)
    status = collect_job_use(*journal, *make_slurm_scheduler(),
                             std::chrono::seconds(shows_job_use(benchmark) ? 20 : 0));
  if (const std::string load = load_average(); status && !load.empty())
    status = journal->add_fact("Load at end", load);
  Status shown_summary = print_summary(invocation, benchmark, *journal, directory, summary);
  if (status) status = shown_summary;
  warn_of_blocked(invocation, benchmark, summary, input.sources);
  std::vector<Journal::Tally> states;
  if (status) status = journal->states(&states);
  const int nothing = status && states.empty() ? report_nothing(benchmark, false) : kFine;
  if (!status) print_error(invocation, status.message());
  if (Status s = write_workpackages_xml(benchmark, *journal, directory.path); !s && status) {
    status = s;
    print_error(invocation, status.message());
  }
  const bool gives_up = invocation.as_jube && has_failed_without_command(*journal);
  journal.reset();
  int code = std::max(status ? summary.exit_code() : kFailed, nothing);
  if (invocation.as_jube && summary.stopped) return code;  // JUBE ends at -e, without an analysis
  bool show = wants_result(invocation, execution.result) && has_results(benchmark);
  // With -r JUBE analyses even if there is no result to show.
  const bool analyse = execution.analyse || (invocation.as_jube && execution.result);
  int shown = kFine;
  std::vector<OpenRun> runs(1);
  std::vector<RenderedResult> tables;
  std::vector<Sample> samples;
  if (show || analyse || execution.junit != nullptr) {
    runs[0].directory = directory;
    if (!open_run(invocation, directory, "", {}, runs.data())) return kFailed;
    ShowOptions show_options;
    show_options.write = writes_result(benchmark, execution.result);
    show_options.shown = &tables;
    size_t rows = 0;
    if (show) {
      if (!benchmark.as_jube && show_options.write) show_options.samples = &samples;
      shown = show_results(invocation, runs, show_options);
      if (!invocation.as_jube) run_on_fail(runs[0], tables);
    } else if (analyse && !analyse_run(invocation, runs[0], &rows)) {
      shown = kFailed;
    }
    code = std::max(code, shown);
  }
  if (execution.junit != nullptr) {
    const Status made =
        junit_suite(*runs[0].benchmark, *runs[0].journal, tables, &execution.junit->emplace_back());
    if (!made) print_error(invocation, made.message());
    if (!made) code = std::max(code, kFailed);
  }
  runs.clear();
  keep_samples(directory.path, samples);
  // JUBE's exit code ignores failed commands. It only reports JUBE's own failures.
  if (invocation.as_jube && status && !summary.interrupted)
    return gives_up || shown != kFine ? kFailed : kFine;
  return code;
}

// The expected id and folder of the run. They are certain only when the folder is created.
RunInfo expected_run(const RunArgs& args, const Benchmark& benchmark) {
  const std::string outpath = outpath_of(benchmark, args.outpath);
  const std::vector<RunDirectory> runs = list_runs(outpath);
  int id = runs.empty() ? 0 : runs.back().id + 1;
  if (!args.ids.empty()) parse_id(args.ids.front(), &id);
  return run_info(benchmark, id, outpath + "/" + padded_id(id), start_time());
}

int run_benchmark(const Invocation& invocation, const RunArgs& args, const PreparedFile& prepared,
                  const Benchmark& benchmark, size_t which, std::vector<JunitSuite>* junit) {
  Input& input = *prepared.input;
  const std::string& file = prepared.path;
  Evaluator& evaluator = *prepared.evaluator;
  const std::string outpath = outpath_of(benchmark, args.outpath);
  RunDirectory directory;
  RunGroup group;
  const bool outpath_is_new = ::access(outpath.c_str(), F_OK) != 0;
  Status made = RunGroup::from_environment(&group);
  if (made) made = make_run_directory(outpath, args.ids, which, &directory);
  if (made && outpath_is_new) made = group.give(outpath, false);
  if (made) made = group.give(directory.path, true);
  if (!made) {
    print_error(invocation, made.message());
    return kBadInput;
  }
  RunRecord record;
  record.id = directory.id;
  record.benchmark = benchmark.name.value;
  record.comment = args.comment.empty() ? benchmark.comment : one_line(args.comment);
  record.tags = input.workflow->tags;
  record.input_file = file;
  record.start = start_time();
  record.change = record.start;
  record.version = kVersion;
  record.home = run_info(benchmark, 0, "", "").home;
  record.set = input.set;
  note_include_path(args.input.include_path, &record);
  note_directory(directory.path, &record);
  std::unique_ptr<Journal> journal;
  Status ready = write_run_files(directory.path, document_to_xml(input.document));
  if (ready) ready = Journal::create(directory.path, record, input.sources, &journal);
  for (const char* part : {"/journal.sqlite", "/journal.sqlite-wal"}) {
    group.open_to(directory.path + part);
  }
  if (!ready) {
    print_error(invocation, ready.message());
    return kFailed;
  }
  note_command(directory.path, "parse",
               fmt::format("{} read by tally {}{}{}", file, kVersion,
                           record.tags.empty() ? "" : ", tags: ", join(record.tags, " ")));
  if (!invocation.quiet) print_banner(benchmark, record, directory);
  Execution execution{args.jobs,    args.exit_on_error, args.hide_animation, args.no_wait,
                      args.analyse, args.result,        args.fresh,          junit};
  return execute_run(invocation, input, benchmark, directory, std::move(journal), execution,
                     evaluator);
}

bool has_outpath(const Invocation& invocation, const RunArgs& args, const Input& input,
                 const Benchmark& benchmark) {
  if (invocation.as_jube && outpath_of(benchmark, args.outpath, false, "").empty()) {
    print_error(invocation, "Missing attribute 'outpath' in <benchmark>",
                "give it one, or say where runs are to lie with -o");
    return false;
  }
  const std::string unknown = unknown_variable(expand_path(benchmark.outpath.value));
  if (unknown.empty() || !args.outpath.empty()) return true;
  Diagnostics diagnostics;
  diagnostics.error(benchmark.outpath.mark,
                    fmt::format("outpath: the environment has no variable '{}'", unknown),
                    "parameters and $jube_... are not known here; -o names another folder");
  print_diagnostics(invocation, diagnostics, input.sources);
  return false;
}

}  // namespace

int run_command(const Invocation& invocation, const RunArgs& args) {
  PrepareOptions options;
  options.input = args.input;
  options.strict = invocation.strict;
  options.needs_plan = args.dry_run;
  // All files are checked before the first benchmark starts.
  std::vector<std::unique_ptr<PreparedFile>> files;
  size_t benchmarks = 0;
  for (const std::string& path : args.files) {
    files.push_back(prepare_file(invocation, path, options));
    if (!files.back()) return kBadInput;
    benchmarks += files.back()->input->workflow->benchmarks.size();
  }
  if (args.ids.size() > benchmarks) {
    print_error(invocation,
                fmt::format("--id: {} ids for {} run{}", args.ids.size(), benchmarks,
                            benchmarks == 1 ? "" : "s"),
                "one id a benchmark, in the order of the files");
    return kBadInput;
  }
  int code = kFine;
  for (const auto& file : files) {
    for (const Benchmark& benchmark : file->input->workflow->benchmarks) {
      if (!has_outpath(invocation, args, *file->input, benchmark)) return kBadInput;
      const auto prepared =
          prepare_benchmark(invocation, *file, benchmark, expected_run(args, benchmark), options);
      if (!prepared) return kBadInput;
      if (args.dry_run) {
        code = std::max(code, dry_run(invocation, args, *prepared));
      } else if (!announce_jobs(invocation, *prepared, node_hours_limit(args))) {
        return kBadInput;
      }
    }
  }
  if (args.dry_run) return code;
  if (const Status can = can_write_report(args.junit); !args.junit.empty() && !can) {
    print_error(invocation, can.message(), "nothing was started; give --junit another path");
    return kBadInput;
  }
  std::vector<JunitSuite> suites;
  size_t which = 0;
  for (const auto& file : files) {
    for (const Benchmark& benchmark : file->input->workflow->benchmarks) {
      code = std::max(code, run_benchmark(invocation, args, *file, benchmark, which++,
                                          args.junit.empty() ? nullptr : &suites));
    }
  }
  if (args.junit.empty()) return code;
  const Status written = write_file(args.junit, junit_document(suites));
  if (!written) print_error(invocation, written.message());
  return written ? code : std::max(code, kFailed);
}

int continue_command(const Invocation& invocation, const ContinueArgs& args) {
  std::vector<RunDirectory> runs = find_runs(invocation, args.runs);
  if (runs.empty()) return kBadInput;
  int code = kFine;
  RunGroup group;  // its folders belong to the group already
  if (Status s = RunGroup::from_environment(&group); !s) {
    print_error(invocation, s.message());
    return kBadInput;
  }
  for (const RunDirectory& directory : runs) {
    std::unique_ptr<Journal> journal;
    if (Status s = Journal::open(directory.path, &journal); !s) {
      print_error(invocation, s.message());
      code = std::max(code, kFailed);
      continue;
    }
    std::unique_ptr<Input> input = load_stored(invocation, *journal, directory.path);
    if (!input->workflow) return kBadInput;
    const Benchmark& benchmark = *input->find(journal->run().benchmark);
    note_command(directory.path, "continue", "continued; see run.log");
    if (!invocation.quiet) print_banner(benchmark, journal->run(), directory);
    Execution execution{args.jobs,    args.exit_on_error, args.hide_animation,
                        args.no_wait, args.analyse,       args.result};
    std::unique_ptr<Evaluator> evaluator = make_run_evaluator(invocation, *input->workflow);
    code = std::max(code, execute_run(invocation, *input, benchmark, directory, std::move(journal),
                                      execution, *evaluator));
  }
  return code;
}

}  // namespace tally
