// Which repeats are needed, and which are warm-ups: a step's `repeat: {warmup, until}`.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/expand/evaluator.h"
#include "engine/journal/journal.h"
#include "engine/results/rows/analyse.h"
#include "engine/results/table/result_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The workpackages that have not started and need not run: repeats of points for which the interval
// of the median of `metric` is as narrow as the step asks.
Status repeats_not_needed(const Benchmark& benchmark, const Journal& journal,
                          const std::string& run_dir, Evaluator& evaluator, std::vector<int>* ids);

}  // namespace tally
