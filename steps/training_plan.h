// What a dry run asks of `tally-train --plan`, and what it makes of the answer. Pure functions.
#pragma once

#include <string>

#include "engine/workflow/step_kinds.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The plan that a run step's `launch` needs when its program is tally-train that trains: its flags,
// the step's GPUs (nodes x gpuspernode), and the parameter plan_device where it has a value.
// Parameters that only a run knows, and words that only a shell could expand, give a `why_not`.
PlanRequest plan_request(const Step& step, const Lookup& lookup);

// One line of a plan in JSON (docs/planner.md): parameters, layout, memory of a GPU, whether it
// fits, bubble, the smallest number of nodes. Empty when `json` is not a plan.
std::string plan_summary(const std::string& json);

}  // namespace tally
