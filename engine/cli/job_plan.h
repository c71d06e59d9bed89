// Announces the cost of a run's jobs before the first is submitted.
#pragma once

#include <optional>

#include "engine/cli/prepare.h"

namespace tally {

// Prints the plan's jobs, nodes x time and node-hours. Returns false, after printing why, when the
// run must not start. Prints nothing for a benchmark that submits no jobs.
bool announce_jobs(const Settings& settings, const PlannedRun& planned,
                   std::optional<double> max_node_hours);

}  // namespace tally
