// Finds mistakes in a planned benchmark: values, resources and files that are known before any step
// has run.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/plan/planned_run.h"

namespace tally {

// It is an error if none of a step's workpackages can be made. It is a warning if only some of them
// cannot be made, because the others run. Each mistake is reported once, at its place in the file.
void check_planned(PlannedRun& planned, Diagnostics& diagnostics);

// Says that `rule` and others leave out all `points` of a step, which then measures nothing.
void report_no_point(const Step& step, const Text& rule, size_t points, Diagnostics& diagnostics);

}  // namespace tally
