#include "engine/cli/job_plan.h"

#include <fmt/format.h>

#include <iostream>

namespace tally {

bool announce_jobs(const Settings& settings, const PlannedRun& planned,
                   std::optional<double> max_node_hours) {
  const Estimate& estimate = planned.estimate;
  if (estimate.jobs == 0) return true;
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
