// The values that the analysers of one result found.
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/rows/analyse.h"
#include "engine/results/rows/records.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Returns the records of one result: its analysers' rows over these workpackages, one analyser
// after the other. `samples`: as for analyse().
Records result_records(const Benchmark& benchmark, const Result& result,
                       const std::vector<WorkpackageView>& views, Evaluator& evaluator,
                       Diagnostics& diagnostics, std::vector<Sample>* samples = nullptr);
void warn_of_unmatched(const Records& records, Diagnostics& diagnostics);

}  // namespace tally
