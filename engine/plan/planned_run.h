// A run with its plan, checked and estimated. Every command with an input file starts with this.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/plan/estimate.h"
#include "engine/plan/plan.h"
#include "engine/run/run.h"

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

}  // namespace tally
