// A benchmark from a few lines of YAML, read without the engine's own reader: parameter sets
// (value, mode, type, separator, update_mode, zip, where) and steps (depend, use, do, iterations,
// cycles, active, kind, repeat).
#pragma once

#include <string>

#include "engine/workflow/workflow.h"

namespace tally::testing {

// Throws std::runtime_error on what it does not know, so that a test's slip does not pass.
Benchmark small_workflow(const std::string& yaml);

}  // namespace tally::testing
