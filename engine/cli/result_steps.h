// Steps of kind: result: commands that make figures and files from a run's tables.
#pragma once

#include <vector>

#include "engine/report/report.h"
#include "engine/run/run.h"
#include "engine/run/settings.h"

namespace tally {

// Does each such step in RUN/result/STEP: its file sets are placed there, each table lies there as
// TABLE.csv, then its commands run, in order. A step is done again only if its tables, commands,
// environment or files differ from those of the last time. The work is made beside the folder and
// takes its place when the last command has ended with exit code 0; otherwise it stays in
// STEP.failed and the earlier folder in its place. `unfinished`: the run goes on, so that its
// tables will change: nothing is done. Prints what was made and what failed. Returns an exit code.
int do_result_steps(const Settings& settings, const Run& run,
                    const std::vector<RenderedResult>& tables, bool unfinished);

}  // namespace tally
