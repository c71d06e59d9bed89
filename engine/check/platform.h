// Turns a site's description of its cluster (`platform:`) into the sets that run steps use.
// Internal to check/.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/read/document.h"
#include "engine/workflow/scheduler_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The names of these sets, in the order in which a step uses them: systemParameter (what a job
// requests), executeset (how it is submitted), executesub and jobfiles (its script).
const std::vector<std::string>& platform_sets();

// Every element that holds a `platform` gets the four sets that the platform describes. They are
// the sets of its template (`init_with`) with the site's values. Tags must have been applied. More
// than one remaining platform in a file is an error. `table_of` gives the table of the scheduler
// that a platform names; null: it has none, or an error was reported.
using TableFinder = std::function<const SchedulerTable*(const Text& scheduler)>;
void add_platform_sets(Element* root, const TableFinder& table_of, Diagnostics& diagnostics);

// "jsc (slurm)" for a file that describes platforms and has no step. Empty for any other file.
std::string platforms_of(const Element& root);
bool describes_platform(const Element& root);

// A workflow that submits one job to the given platform of a file.
std::string job_on(const std::string& platform);

// Keeps the names of a platform's sets apart from those of the user.
// The platform's sets in the benchmark, those with this ending ("@slurm"), are of a file that does
// not know the user's names: their parameters are the platform's, and their texts name these, also
// where the user has others of the same name.
void give_to_platform(const std::string& ending, const StepKinds& kinds, Benchmark* benchmark);

}  // namespace tally
