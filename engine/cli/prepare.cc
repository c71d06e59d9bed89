#include "engine/cli/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/check/platform_file.h"
#include "engine/execute/jobs/scheduler.h"
#include "engine/plan/source_check.h"
#include "engine/read/files.h"
#include "engine/results/rows/analyse.h"
#include "engine/results/table/expression_check.h"
#include "engine/results/table/reference_check.h"
#include "engine/results/table/rule_check.h"

namespace tally {

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
    check_patterns(benchmark, diagnostics);
    check_reference_conditions(benchmark, diagnostics);
    check_sources(benchmark, diagnostics);
    Diagnostics expressions;
    if (settings.strict || options.validate || benchmark.rules.harmless_mistakes_are_errors)
      expressions.make_warnings_errors();
    check_expressions(benchmark, options.validate, *file->evaluator, expressions);
    diagnostics.append(expressions);
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

// Jobs of Slurm would all fail after the run has begun. Those of schedulers that nothing is submitted
// to say so themselves.
bool finds_scheduler(const Settings& settings, const Estimate& estimate) {
  if (std::none_of(estimate.schedulers.begin(), estimate.schedulers.end(), is_submitted_to) ||
      !find_program({"sbatch", "squeue"}, {}).empty())
    return true;
  print_error(
      settings, "no folder of PATH has Slurm's `sbatch` and `squeue`: nothing can be submitted",
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
  if (!finds_scheduler(settings, estimate)) return false;
  if (settings.quiet) return !refuse(settings, planned, max_node_hours, "nothing was submitted");
  std::cout << fmt::format("{}: {} job{} for {}", planned.run.benchmark().name.value, estimate.jobs,
                           estimate.jobs == 1 ? "" : "s",
                           estimate.unknown == estimate.jobs
                               ? "unknown node-hours"
                               : fmt::format("{:.1f} node-hours at most", estimate.node_hours))
            << '\n';
  print_estimate(estimate, std::cout);
  std::cout.flush();
  return !refuse(settings, planned, max_node_hours, "nothing was submitted");
}

}  // namespace tally
