// A benchmark with its plan, checked and estimated. A run starts with this.
#pragma once

#include <set>
#include <string>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/expand/expand.h"
#include "engine/plan/estimate.h"
#include "engine/plan/plan.h"
#include "engine/workflow/workflow.h"

namespace tally {

// A benchmark with its plan. Not movable, because the plan and the expander refer to members.
struct PreparedBenchmark {
  PreparedBenchmark(const Benchmark& of, const RunInfo& run, Evaluator& evaluator,
                    const std::set<std::string>& tags)
      : benchmark(of), info(run), expander(of, run, evaluator, pool, tags) {}
  PreparedBenchmark(const PreparedBenchmark&) = delete;
  PreparedBenchmark& operator=(const PreparedBenchmark&) = delete;

  const Benchmark& benchmark;
  RunInfo info;
  TextPool pool;
  Expander expander;
  Plan plan;
  Estimate estimate;
};

// Makes the plan and the estimate, and checks what depends on values. It does nothing if planning
// would run the user's commands while no job is submitted and nobody needs the plan.
void make_prepared_plan(PreparedBenchmark& prepared, bool needs_plan, Diagnostics& diagnostics);

// Whether a run of the benchmark may submit jobs, because a run step's platform names a scheduler.
bool may_submit(const Benchmark& benchmark);

}  // namespace tally
