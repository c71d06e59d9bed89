// The predictions of a dry run about the reuse of setup and build work. Decided by the run's own
// class, SetupReuse.
#pragma once

#include <map>
#include <string>

#include "engine/plan/planned_run.h"

namespace tally {

// Predicts what a run would report for each setup and build workpackage of a plan, by
// id: "reused, the same as in /runs/000000/000000_build/work", "done again, compared with the last
// kept work: file input.txt changed". Nothing is written and no command is run.
std::map<int, std::string> predict_reuse(PlannedRun& planned, const Settings& settings);

}  // namespace tally
