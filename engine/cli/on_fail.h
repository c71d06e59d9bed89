// The commands that collect the cause of a missed reference (`on_fail`).
#pragma once

#include <vector>

#include "engine/cli/show_results.h"

namespace tally {

// Runs the command of each missed reference of a run's tables, once for each row, in the folder of
// the row's workpackage. The environment has TALLY_REFERENCE (what was missed) and TALLY_TABLE. The
// output is appended to result/on_fail.log. A command that fails, or takes longer than a minute, is
// reported and changes nothing else.
void run_on_fail(const Settings& settings, const Run& run,
                 const std::vector<RenderedResult>& tables);

}  // namespace tally
