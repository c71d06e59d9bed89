#include "engine/cli/job_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "engine/base/text.h"
#include "engine/expand/evaluator.h"
#include "engine/plan/estimate.h"
#include "engine/plan/plan.h"

namespace tally {

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

bool announce_jobs(const Invocation& invocation, const Input& input, const Benchmark& benchmark,
                   const RunInfo& info, std::optional<double> max_node_hours) {
  if (!may_submit(benchmark)) return true;
  std::unique_ptr<Evaluator> evaluator = make_evaluator(".");
  TextPool pool;
  Expander expander(benchmark, info, *evaluator, pool, input.tags());
  Diagnostics diagnostics;
  const Plan plan = make_plan(benchmark, expander, diagnostics);
  // What is wrong with a step the run itself says, where it comes to it.
  if (diagnostics.has_errors()) return true;
  const Estimate estimate = estimate_jobs(plan, expander);
  if (estimate.jobs == 0) return true;
  std::cout << fmt::format("{}: {} job{} for {}", benchmark.name.value, estimate.jobs,
                           estimate.jobs == 1 ? "" : "s",
                           estimate.unknown == estimate.jobs
                               ? "unknown node-hours"
                               : fmt::format("{:.1f} node-hours at most", estimate.node_hours))
            << '\n';
  print_estimate(estimate, std::cout);
  std::cout.flush();
  const std::string why = refusal(estimate, max_node_hours);
  if (!why.empty()) print_error(invocation, why, "nothing was submitted");
  return why.empty();
}

}  // namespace tally
