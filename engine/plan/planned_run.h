// A run with its plan, checked and estimated. Every command with an input file starts with this.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/plan/estimate.h"
#include "engine/plan/plan.h"
#include "engine/run/run.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct PlannedRun {
  Run run;
  Plan plan;
  Estimate estimate;
};

// Makes the plan and the estimate, and checks what depends on values. It does nothing if planning
// would run the user's commands while no job is submitted and nobody needs the plan.
void plan_and_check(PlannedRun& planned, bool needs_plan, Diagnostics& diagnostics);

// Lets the run start with the plan's first workpackages, where they are final. The plan is empty
// afterwards.
void start_with_plan(PlannedRun& planned);

// It is an error if none of a step's workpackages can be made. It is a warning if only some of them
// cannot be made, because the others run. Each mistake is reported once, at its place in the file.
void check_planned(PlannedRun& planned, Diagnostics& diagnostics);

// Says that `rule` and others leave out all `points` of a step, which then measures nothing.
void report_no_point(const Step& step, const Text& rule, size_t points, Diagnostics& diagnostics);

// Checks that the files exist which a workflow copies or links before any step has run.

// Reports sources without $parameters that do not exist. If the benchmark's first step uses the
// source, this is an error, because nothing can create the file before. If another step without
// `depend` uses it, this is a warning.
void check_sources(const Benchmark& benchmark, Diagnostics& diagnostics);

}  // namespace tally
