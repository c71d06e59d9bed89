// Which repeats are needed, and which are warm-ups: a step's `repeat: {warmup, until}`.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/expand/evaluator.h"
#include "engine/journal/journal.h"
#include "engine/results/analyse.h"
#include "engine/results/result_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Whether the workpackage is a warm-up of its step. No table shows its values.
bool is_warmup(const Benchmark& benchmark, const WorkpackageView& workpackage);

// Half of the width of the median's 95 % interval, divided by the median. Negative if it is not
// known: fewer than six values, or a median of 0.
double relative_half_width(const statistics::Sample& sample);

// The workpackages that have not started and need not run: repeats of points for which the interval
// of the median of `metric` is as narrow as the step asks.
Status repeats_not_needed(const Benchmark& benchmark, const Journal& journal,
                          const std::string& run_dir, Evaluator& evaluator, std::vector<int>* ids);

// Notes rows whose interval is wider than their step asks.
void note_precision(const Benchmark& benchmark, ResultTable& out);

}  // namespace tally
