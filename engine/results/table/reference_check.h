// Finds references that no value can meet, before anything has run.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/workflow/workflow.h"

namespace tally {

// An error for each: a range whose end is before its beginning, a tolerance below 0, a bound that
// is no number, a number compared with a text, a condition that uses no value of a row, and `where`
// that chooses no row.
void check_reference_conditions(const Benchmark& benchmark, Diagnostics& diagnostics);

}  // namespace tally
