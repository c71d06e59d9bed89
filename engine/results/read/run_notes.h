// Why results of a run may be wrong or lack something, in sentences for its reader.
#pragma once

#include <string>
#include <vector>

#include "engine/results/read/workpackage_view.h"

namespace tally {

// Counts the workpackages of a run that was killed, goes on or waits, by their state: "2 of 6
// workpackages have not ended (1 running, 1 not begun): ...". Empty: all have ended. A step before
// theirs may have rows with values, so that no row tells. `views`: all of the run.
std::string unfinished_note(const Benchmark& benchmark, const std::vector<WorkpackageView>& views);

// Counts the workpackages whose output has changed since they ended (WorkpackageView::changes), and
// says what happened to the first of them. Empty: none, or the journal has kept the values of all.
std::string changed_note(const Benchmark& benchmark, const std::vector<WorkpackageView>& views);

}  // namespace tally
