#include "engine/cli/prepare.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "engine/base/files.h"
#include "engine/base/terminal.h"
#include "engine/base/text.h"
#include "engine/check/platform.h"
#include "engine/execute/jobs/scheduler.h"
#include "engine/plan/planned_run.h"
#include "engine/read/input_files.h"
#include "engine/results/read/patterns.h"
#include "engine/results/table/early_checks.h"

namespace tally {

bool in_color(const Settings& settings, int fd) {
  if (settings.color != Settings::Color::automatic)
    return settings.color == Settings::Color::always;
  const char* off = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  return (off == nullptr || *off == '\0') && kind != nullptr && std::string_view(kind) != "dumb" &&
         ::isatty(fd) != 0;
}

void print_error(const Settings& settings, const std::string& message, const std::string& hint) {
  if (settings.problems != nullptr) {
    settings.problems->push_back({{}, 0, 0, Severity::error, message, hint});
    return;
  }
  const bool color = in_color(settings, STDERR_FILENO);
  print_styled(stderr,
               fmt::format("{}: {}error:{} {}\n", literal(settings.program),
                           color ? "\033[1;31m" : "", color ? "\033[0m" : "", literal(message)));
  if (!hint.empty()) fmt::print(stderr, "hint: {}\n", hint);
}

size_t print_diagnostics(const Settings& settings, const Diagnostics& diagnostics,
                         const Sources& sources) {
  if (diagnostics.all().empty()) return 0;
  if (settings.problems != nullptr) {
    add_problems(diagnostics, sources, settings.problems);
    return diagnostics.all().size();
  }
  if (in_color(settings, STDERR_FILENO)) {
    print_styled(stderr, diagnostics.format(sources, true));
  } else {
    const std::string text = diagnostics.format(sources);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  return diagnostics.all().size();
}

void print_error(const Settings& settings, const Status& status) {
  print_error(settings, status.message(), status.hint());
}

bool print_if_error(const Settings& settings, const Status& status) {
  if (!status) print_error(settings, status);
  return !status;
}

std::shared_ptr<Input> load_input(const Settings& settings, const std::string& path,
                                  const InputArgs& args) {
  auto input = std::make_shared<Input>();
  if (Status s = read_input(settings, path, args, input.get()); !s) print_error(settings, s);
  print_diagnostics(settings, input->diagnostics, input->sources);
  return input;
}

std::shared_ptr<Input> load_input_text(const Settings& settings, const std::string& name,
                                       const std::string& text, const InputArgs& args) {
  auto input = std::make_shared<Input>();
  if (Status s = read_input_text(settings, name, text, args, input.get()); !s)
    print_error(settings, s);
  print_diagnostics(settings, input->diagnostics, input->sources);
  return input;
}

std::unique_ptr<Run> open_run(const Settings& settings, const RunDirectory& directory,
                              Run::Access access) {
  std::unique_ptr<Run> run;
  if (print_if_error(settings, Run::open(directory, access, settings, &run))) return nullptr;
  print_diagnostics(settings, run->input().diagnostics, run->input().sources);
  if (!run->input().workflow) run.reset();
  return run;
}

bool read_definitions(const Settings& settings, Run* run) {
  if (print_if_error(settings, run->read_definitions(settings))) return false;
  const Input& input = run->definitions_input();
  if (&input == &run->input()) return true;  // its problems were printed when it was read
  print_diagnostics(settings, input.diagnostics, input.sources);
  return input.workflow.has_value();
}

namespace {

// Checks what results are made with: patterns, references and expressions. `validate`: as
// PrepareOptions::validate.
void check_results(const Settings& settings, const Benchmark& benchmark, bool validate,
                   Evaluator& evaluator, Diagnostics& diagnostics) {
  check_patterns(benchmark, diagnostics);
  check_reference_conditions(benchmark, diagnostics);
  Diagnostics expressions;
  if (settings.strict || validate || benchmark.rules.harmless_mistakes_are_errors)
    expressions.make_warnings_errors();
  check_expressions(benchmark, validate, evaluator, expressions);
  diagnostics.append(expressions);
}

}  // namespace

bool can_make_results(const Settings& settings, const Benchmark& benchmark,
                      const Sources& sources) {
  if (!benchmark.rules.harmless_mistakes_are_errors) return true;
  Diagnostics diagnostics;
  if (settings.strict) diagnostics.make_warnings_errors();
  check_results(settings, benchmark, false, *make_reading_evaluator(), diagnostics);
  print_diagnostics(settings, diagnostics, sources);
  return !diagnostics.has_errors();
}

namespace {

// Takes the patterns, analysers and results of `file`, and keeps them for later commands, as JUBE
// does, because `analyse -u` followed by `result` is common.
bool take_update(const Settings& settings, const std::string& file, const InputArgs& args,
                 Run* run) {
  if (print_if_error(settings, run->update_definitions(settings, file, args))) return false;
  const Input& input = run->definitions_input();
  print_diagnostics(settings, input.diagnostics, input.sources);
  if (!input.workflow) return false;
  const RunRecord& record = run->journal().run();
  if (input.find(record.benchmark) == nullptr) {
    print_error(settings, fmt::format("'{}' has no benchmark '{}', which run {} is of", file,
                                      record.benchmark, record.id));
    return false;
  }
  if (!can_make_results(settings, run->definitions(), input.sources)) return false;
  if (const Status kept = run->keep_definitions(file, args); !kept)
    fmt::print(stderr, "note: -u {} is not kept for the next time: {}\n", file, kept.message());
  return true;
}

}  // namespace

std::unique_ptr<Run> open_results(const Settings& settings, const RunDirectory& directory,
                                  const std::string& update, const InputArgs& update_input) {
  std::unique_ptr<Run> run = open_run(settings, directory, Run::Access::read);
  if (!run) return run;
  const bool read = update.empty() ? read_definitions(settings, run.get())
                                   : take_update(settings, update, update_input, run.get());
  if (!read) run.reset();
  return run;
}

bool refuse(const Settings& settings, const PlannedRun& planned,
            std::optional<double> max_node_hours, const char* consequence) {
  const std::string why = refusal(planned.estimate, max_node_hours);
  if (!why.empty()) print_error(settings, why, consequence);
  return !why.empty();
}

std::unique_ptr<PreparedFile> prepare_file(const Settings& settings, const std::string& path,
                                           const PrepareOptions& options) {
  auto file = std::make_unique<PreparedFile>();
  InputArgs args = options.input;
  args.all_platforms = options.validate;
  args.unchecked = describes_platform;
  file->input = load_input(settings, path, args);
  args.unchecked = nullptr;
  if (!file->input->workflow && !file->input->diagnostics.has_errors() &&
      describes_platform(file->input->document.root)) {
    if (!options.validate) {
      print_error(settings, fmt::format("'{}' describes a platform and has no step to run", path),
                  fmt::format("a run step names it under platform; `{} validate {}` checks it",
                              settings.command, shell_quote(path)));
      return nullptr;
    }
    file->platform = platforms_of(file->input->document.root);
    const std::string job = join_path(directory_of(path), "(a job on it)");
    file->input = load_input_text(settings, job, job_on(absolute_path(path)), args);
  }
  Input& input = *file->input;
  if (!input.workflow) return nullptr;
  // `validate` is for files of strangers, too.
  file->evaluator =
      options.validate ? make_reading_evaluator() : make_run_evaluator(settings, *input.workflow);
  Diagnostics diagnostics;
  if (settings.strict) diagnostics.make_warnings_errors();
  for (const Benchmark& benchmark : input.workflow->benchmarks) {
    check_sources(benchmark, diagnostics);
    check_results(settings, benchmark, options.validate, *file->evaluator, diagnostics);
  }
  print_diagnostics(settings, diagnostics, input.sources);
  if (diagnostics.has_errors()) return nullptr;
  file->warnings = input.diagnostics.warning_count();
  if (!input.workflow->benchmarks.empty()) return file;
  print_error(settings, fmt::format("'{}' has no benchmark to run", path),
              "check its selection, its tags, --only-bench and --not-bench");
  return nullptr;
}

std::unique_ptr<PlannedRun> plan_run(const Settings& settings, const PreparedFile& file,
                                     const Benchmark& benchmark, RunInfo info,
                                     const PrepareOptions& options) {
  info.most_points = settings.max_workpackages;
  auto planned = std::make_unique<PlannedRun>(
      PlannedRun{Run(file.input, benchmark, std::move(info), file.evaluator), {}, {}});
  Diagnostics diagnostics;
  if (settings.strict) diagnostics.make_warnings_errors();
  plan_and_check(*planned, options.needs_plan, diagnostics);
  if (options.validate && benchmark.rules.empty_run_is_error && !diagnostics.has_errors())
    check_known_rules(*planned, diagnostics);
  print_diagnostics(settings, diagnostics, file.input->sources);
  if (diagnostics.has_errors()) return nullptr;
  return planned;
}

namespace {

// Without the scheduler's commands all jobs would fail after the run has begun.
bool finds_scheduler(const Settings& settings, const Benchmark& benchmark,
                     const Estimate& estimate) {
  std::string whose = "Slurm's `sbatch` and `squeue`";
  std::vector<std::string> programs = {"sbatch", "squeue"};
  for (const Step& step : benchmark.steps) {
    if (!step.scheduler || estimate.schedulers.count(step.scheduler->name) == 0) continue;
    programs = {step.scheduler->cancel.front()};
    whose = fmt::format("`{}` of {}", programs.front(), step.scheduler->title);
  }
  if (programs.front().find('/') != std::string::npos || !find_program(programs, {}).empty())
    return true;
  print_error(
      settings, fmt::format("no folder of PATH has {}: nothing can be submitted", whose),
      fmt::format("`{} script FILE` writes the job scripts; a run step without a platform runs "
                  "on this machine",
                  settings.command));
  return false;
}

}  // namespace

bool announce_jobs(const Settings& settings, const PlannedRun& planned,
                   std::optional<double> max_node_hours) {
  const Estimate& estimate = planned.estimate;
  if (estimate.jobs == 0) return true;
  if (!finds_scheduler(settings, planned.run.benchmark(), estimate)) return false;
  if (settings.quiet) return !refuse(settings, planned, max_node_hours, "nothing was submitted");
  std::cout << fmt::format("{}: {} job{} for {}", planned.run.benchmark().name.value, estimate.jobs,
                           estimate.jobs == 1 ? "" : "s",
                           estimate.unknown == estimate.jobs
                               ? "unknown node-hours"
                               : fmt::format("{:.1f} node-hours at most", estimate.node_hours))
            << '\n';
  // Each machine of a fleet has jobs of its own, most of which will not be needed.
  if (!planned.run.benchmark().fleet.is_tested()) print_estimate(estimate, std::cout);
  std::cout.flush();
  return !refuse(settings, planned, max_node_hours, "nothing was submitted");
}

}  // namespace tally
