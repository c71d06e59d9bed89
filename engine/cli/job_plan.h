// What a run's jobs may cost, said before the first is submitted.
#pragma once

#include <optional>

#include "engine/cli/prepare.h"

namespace tally {

// Prints the plan's jobs, nodes x time and node-hours; false, after saying why, when the run is not
// to be started. Says nothing of a benchmark that submits nothing.
bool announce_jobs(const Invocation& invocation, const PreparedBenchmark& prepared,
                   std::optional<double> max_node_hours);

}  // namespace tally
