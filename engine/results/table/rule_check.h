// The check of those `where` rules that are known in a plan that evaluates nothing.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/plan/planned_run.h"

namespace tally {

// An error for each step whose rules leave out all of its points, whatever Python would say of the
// rest: the message of a plan that computes. Rules that cannot be read without Python are taken to
// hold.
void check_known_rules(PlannedRun& planned, Diagnostics& diagnostics);

}  // namespace tally
