// Builds steps, analysers and results from their elements. Internal to check/.
#pragma once

#include "engine/check/sets.h"

namespace tally {

// Adds everything in `element` (a <benchmark>) except its sets. Sets named through `from` are added
// too.
void build_benchmark(const Element& element, const SetFile& home, SetBuilder& sets,
                     Benchmark* benchmark, Diagnostics& diagnostics);

// Adds a table, a database, a syslog or a chart.
void add_output(const Element& element, Result* result, Diagnostics& diagnostics);

}  // namespace tally
