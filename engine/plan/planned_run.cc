#include "engine/plan/planned_run.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/plan/planned_check.h"

namespace tally {
namespace {

// Whether a plan would run the user's commands. A program that computes a parameter may be slow or
// have side effects.
bool runs_commands(const Benchmark& benchmark) {
  for (const auto& [name, set] : benchmark.parameter_sets) {
    for (const Parameter& parameter : set.parameters) {
      if (parameter.mode == Mode::shell || parameter.mode == Mode::perl) return true;
    }
  }
  return false;
}

// Whether a run of the benchmark may submit jobs, because a run step's platform names a scheduler.
bool may_submit(const Benchmark& benchmark) {
  const bool launches = std::any_of(
      benchmark.steps.begin(), benchmark.steps.end(),
      [](const Step& step) { return step.kind == StepKind::run && !step.launch.value.empty(); });
  if (!launches) return false;
  for (const auto& [name, set] : benchmark.parameter_sets) {
    for (const Parameter& p : set.parameters) {
      if (p.name.value == "scheduler" && strip(p.value.value) != "local") return true;
    }
  }
  return false;
}

}  // namespace

void plan_and_check(PlannedRun& planned, bool needs_plan, Diagnostics& diagnostics) {
  const Benchmark& benchmark = planned.run.benchmark();
  const bool computes = planned.run.evaluator().computes();
  if (computes && !needs_plan && !may_submit(benchmark) && runs_commands(benchmark)) return;
  planned.plan = make_plan(benchmark, planned.run.expander(), diagnostics);
  if (!diagnostics.has_errors()) check_planned(planned, diagnostics);
  if (!diagnostics.has_errors()) {
    planned.estimate = estimate_jobs(planned.plan, planned.run.expander());
    // The known part of the estimate may be too much. The part that is not computed may not.
    if (!computes) planned.estimate.unknown = 0;
  }
}

void start_with_plan(PlannedRun& planned) {
  std::vector<Workpackage> first = std::move(planned.plan.workpackages);
  first.erase(first.begin() + static_cast<std::ptrdiff_t>(planned.plan.first), first.end());
  planned.plan = {};
  planned.run.start_with(std::move(first));
}

}  // namespace tally
