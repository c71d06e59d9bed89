// Builds the input of results/ from a run's journal.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/expand/expand.h"
#include "engine/journal/journal.h"
#include "engine/results/read/workpackage_view.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// The run's workpackages with their parameters, types, units and built-ins. `finished` includes
// failed workpackages, as in JUBE's tables. A note says which failed and why. Without
// `all_builtins` the views have only those of JUBE's variables that the benchmark's results name,
// which saves most of the memory of a large run.
Status workpackage_views(const Benchmark& benchmark, const Journal& journal,
                         const std::string& run_dir, std::vector<WorkpackageView>* views,
                         bool all_builtins = false);

// Whether a result shows what jobs used: how long they ran, their energy or memory.
bool shows_job_use(const Benchmark& benchmark);

// A planned workpackage that did not run here, with the log of a job that a person submitted by
// hand. All values of its point must be final (finish_planned()).
WorkpackageView planned_view(const Benchmark& benchmark, const Expander& expander,
                             const Workpackage& workpackage, const std::string& log);

// The definitions of a workpackage's parameters, by name. If two sets have the same name, these are
// the definitions that the workpackage was made from. If the workflow no longer has them (`-u`),
// these are the definitions by that name in the sets of its step and of the steps before.
using DefinitionsByName = std::map<std::string, const Parameter*>;
DefinitionsByName definitions_of(const Benchmark& benchmark, const Journal::Stored& stored);

}  // namespace tally
