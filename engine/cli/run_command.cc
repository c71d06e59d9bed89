// tally run, tally continue.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/path_text.h"
#include "engine/base/text.h"
#include "engine/check/core_values.h"
#include "engine/cli/commands.h"
#include "engine/cli/execution.h"
#include "engine/cli/job_plan.h"
#include "engine/cli/junit.h"
#include "engine/cli/prepare.h"
#include "engine/cli/summary.h"
#include "engine/cli/version.h"
#include "engine/execute/machine_facts.h"
#include "engine/execute/setup_reuse.h"
#include "engine/expand/evaluator.h"
#include "engine/jube/group.h"
#include "engine/jube/jube_files.h"
#include "engine/plan/estimate.h"
#include "engine/plan/generated_files.h"
#include "engine/plan/plan.h"
#include "engine/plan/training_plans.h"
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

int dry_run(const Settings& settings, const RunArgs& args, PreparedBenchmark& prepared) {
  const Plan& plan = prepared.plan;
  const int nothing = plan.workpackages.empty() ? report_nothing(prepared.benchmark, true) : kFine;
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
    Status made =
        generated_files(prepared.benchmark, workpackage, prepared.expander, &folder, &files);
    if (!made) print_error(settings, made.message());
    for (FileBytes& one : files) texts.emplace_back(one.path, std::move(one.bytes));
    for (const std::vector<int>& members : prepared.estimate.packs) {
      if (std::find(members.begin(), members.end(), workpackage.id) == members.end()) continue;
      FileBytes pack;
      made = generated_pack(prepared.benchmark, plan.workpackages, members, prepared.expander,
                            &folder, &pack);
      if (!made) print_error(settings, made.message());
      texts.emplace_back("../../" + folder + "/" + pack.path, std::move(pack.bytes));
    }
    return texts;
  };
  if (args.all || settings.verbose > 0) print.most = static_cast<size_t>(-1);
  if (args.script < 0) {
    print.remarks = predict_reuse(prepared.benchmark, prepared.expander, plan.workpackages,
                                  absolute_path(prepared.expander.run().rundir + "/.."),
                                  settings.fresh, {settings.shell, settings.programs});
  }
  print_plan(plan, prepared.expander, prepared.pool, print, std::cout);
  if (args.script < 0 && !settings.no_exec) {
    const std::string own = program_directory();
    print_training_plans(plan, prepared.expander, {own, own + "/../lib/tally"}, print.most,
                         std::cout);
  }
  std::cout.flush();
  if (refuse(settings, prepared, node_hours_limit(args), "a run would submit nothing")) {
    return kBadInput;
  }
  const bool fails = std::any_of(
      plan.workpackages.begin(), plan.workpackages.end(),
      [](const Workpackage& workpackage) { return workpackage.outcome.state == State::failed; });
  return fails ? kFailed : nothing;
}

// Says why the run's files could not be made. Nothing has begun, so a run without a complete journal
// is removed, and is to be started again: messages about a journal advise to continue it.
int report_no_run(const Settings& settings, const std::string& run_dir, const Status& why) {
  std::string message = why.message();
  std::unique_ptr<Journal> complete;
  if (!Journal::open_read_only(run_dir, &complete)) {
    for (const auto& [advice, instead] :
         {std::pair{std::string(": nothing that finished is lost"), ""},
          std::pair{std::string("continue the run"), "start the run again"},
          std::pair{std::string("try again"), "start the run again"}}) {
      if (const size_t at = message.find(advice); at != std::string::npos)
        message.replace(at, advice.size(), instead);
    }
    std::error_code ignored;
    std::filesystem::remove_all(run_dir, ignored);
  }
  print_error(settings, message);
  return kFailed;
}

// The expected id and folder of the run. They are certain only when the folder is created.
RunInfo expected_run(const RunArgs& args, const Benchmark& benchmark) {
  const std::string outpath = outpath_of(benchmark, args.outpath);
  const std::vector<RunDirectory> runs = list_runs(outpath);
  int id = runs.empty() ? 0 : runs.back().id + 1;
  if (!args.ids.empty()) parse_id(args.ids.front(), &id);
  return run_info(benchmark, id, outpath + "/" + padded_id(id), start_time());
}

int run_benchmark(const Settings& settings, const RunArgs& args, const PreparedFile& prepared,
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
    print_error(settings, made.message());
    return kBadInput;
  }
  RunRecord record;
  record.id = directory.id;
  record.benchmark = benchmark.name.value;
  record.comment = args.with_comment ? one_line(args.comment) : benchmark.comment;
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
  Document shown = input.document;
  Diagnostics told;  // they were reported when the file was read
  if (!benchmark.as_jube) use_core_values(shown, PlainText::as_written, &shown.root, told);
  if (args.with_comment) set_comment(record.benchmark, record.comment, &shown);
  Status ready = write_run_files(directory.path, document_to_xml(shown));
  if (ready) ready = Journal::create(directory.path, record, input.sources, &journal);
  for (const char* part : {"/journal.sqlite", "/journal.sqlite-wal"}) {
    group.open_to(directory.path + part);
  }
  if (!ready) return report_no_run(settings, directory.path, ready);
  note_command(directory.path, "parse",
               fmt::format("{} read by tally {}{}{}", file, kVersion,
                           record.tags.empty() ? "" : ", tags: ", join(record.tags, " ")));
  if (!settings.quiet) print_banner(benchmark, record, directory);
  return execute_run(settings, input, benchmark, directory, std::move(journal), evaluator, junit);
}

bool has_outpath(const Settings& settings, const RunArgs& args, const Input& input,
                 const Benchmark& benchmark) {
  if (settings.as_jube && outpath_of(benchmark, args.outpath, false, "").empty()) {
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

}  // namespace

int run_command(const Settings& settings, const RunArgs& args) {
  PrepareOptions options;
  options.input = args.input;
  options.strict = settings.strict;
  options.needs_plan = args.dry_run;
  // All files are checked before the first benchmark starts.
  std::vector<std::unique_ptr<PreparedFile>> files;
  size_t benchmarks = 0;
  for (const std::string& path : args.files) {
    files.push_back(prepare_file(settings, path, options));
    if (!files.back()) return kBadInput;
    benchmarks += files.back()->input->workflow->benchmarks.size();
  }
  if (args.ids.size() > benchmarks) {
    print_error(settings,
                fmt::format("--id: {} ids for {} run{}", args.ids.size(), benchmarks,
                            benchmarks == 1 ? "" : "s"),
                "one id a benchmark, in the order of the files");
    return kBadInput;
  }
  int code = kFine;
  for (const auto& file : files) {
    for (const Benchmark& benchmark : file->input->workflow->benchmarks) {
      if (!has_outpath(settings, args, *file->input, benchmark)) return kBadInput;
      const auto prepared =
          prepare_benchmark(settings, *file, benchmark, expected_run(args, benchmark), options);
      if (!prepared) return kBadInput;
      if (args.dry_run) {
        code = std::max(code, dry_run(settings, args, *prepared));
      } else if (!announce_jobs(settings, *prepared, node_hours_limit(args))) {
        return kBadInput;
      }
    }
  }
  if (args.dry_run) return code;
  if (const Status can = can_write_report(args.junit); !args.junit.empty() && !can) {
    print_error(settings, can.message(), "nothing was started; give --junit another path");
    return kBadInput;
  }
  std::vector<JunitSuite> suites;
  size_t which = 0;
  for (const auto& file : files) {
    for (const Benchmark& benchmark : file->input->workflow->benchmarks) {
      code = std::max(code, run_benchmark(settings, args, *file, benchmark, which++,
                                          args.junit.empty() ? nullptr : &suites));
    }
  }
  if (args.junit.empty()) return code;
  const Status written = write_named_file(args.junit, junit_document(suites));
  if (!written) print_error(settings, written.message());
  return written ? code : std::max(code, kFailed);
}

namespace {

// An engine that ends gives its run back and takes it once more, to keep its samples. Therefore the
// one that waits may find the run in use again.
Status open_to_continue(const RunDirectory& directory, const WaitForHolder& wait_for_holder,
                        std::unique_ptr<Journal>* journal) {
  Status opened = Journal::open(directory.path, journal);
  for (bool held = true; !opened && held && wait_for_holder;) {
    held = wait_for_holder(directory);
    opened = Journal::open(directory.path, journal);
  }
  return opened;
}

}  // namespace

int continue_command(const Settings& settings, const RunsArgs& args) {
  return continue_runs(settings, args, nullptr);
}

int continue_runs(const Settings& settings, const RunsArgs& args,
                  const WaitForHolder& wait_for_holder) {
  const std::vector<RunDirectory> runs = find_runs(settings, args);
  if (runs.empty()) return kBadInput;
  int code = kFine;
  RunGroup group;  // its folders belong to the group already
  if (Status s = RunGroup::from_environment(&group); !s) {
    print_error(settings, s.message());
    return kBadInput;
  }
  for (const RunDirectory& directory : runs) {
    std::unique_ptr<Journal> journal;
    if (Status s = open_to_continue(directory, wait_for_holder, &journal); !s) {
      print_error(settings, s.message());
      code = std::max(code, kFailed);
      continue;
    }
    std::unique_ptr<Input> input = load_stored(settings, *journal, directory.path);
    if (!input->workflow) return kBadInput;
    const Benchmark& benchmark = *input->find(journal->run().benchmark);
    note_command(directory.path, "continue", "continued; see run.log");
    if (!settings.quiet) print_banner(benchmark, journal->run(), directory);
    std::unique_ptr<Evaluator> evaluator = make_run_evaluator(settings, *input->workflow);
    code = std::max(code, execute_run(settings, *input, benchmark, directory, std::move(journal),
                                      *evaluator, nullptr));
  }
  return code;
}

}  // namespace tally
