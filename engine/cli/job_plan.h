// What a run's jobs may cost, said before the first is submitted.
#pragma once

#include <optional>

#include "engine/cli/commands.h"
#include "engine/cli/input.h"
#include "engine/expand/expand.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Whether a run of the benchmark may submit jobs: a run step's platform names a scheduler.
bool may_submit(const Benchmark& benchmark);

// Plans the run and prints its jobs, nodes x time and node-hours; false, after saying why, when the
// run is not to be started. Does nothing for a benchmark that submits nothing. Parameters that a
// shell computes are computed for the plan, and again by the run.
bool announce_jobs(const Invocation& invocation, const Input& input, const Benchmark& benchmark,
                   const RunInfo& info, std::optional<double> max_node_hours);

}  // namespace tally
