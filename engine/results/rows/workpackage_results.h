// The values in the files of each workpackage, without the values of others. Private to results/.
#pragma once

#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/rows/analyse.h"
#include "engine/results/rows/analysed_patterns.h"
#include "engine/results/rows/groups.h"

namespace tally {

// The values from each group's own files, in the order of steps and ids. Problems are not reported:
// analyse() does it when it makes the rows.
std::vector<WorkpackageResult> workpackage_results(const Benchmark& benchmark,
                                                   const Analyser& analyser,
                                                   const AnalysedPatterns& known,
                                                   const Groups& groups, Evaluator& evaluator);

// Appends what each workpackage that ended well printed. Each member's own values must have been
// kept (Group::own).
void take_samples(const Benchmark& benchmark, const Analyser& analyser, const Groups& groups,
                  std::vector<Sample>* samples);

}  // namespace tally
