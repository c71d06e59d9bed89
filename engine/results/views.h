// From a run's journal to what results/ works on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/expand/expand.h"
#include "engine/journal/journal.h"
#include "engine/results/analyse.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// The run's workpackages with their parameters, types, units and built-ins. `finished` are those
// that came to an end, failed ones too, as in JUBE's tables; a note says which failed and why.
Status workpackage_views(const Benchmark& benchmark, const Journal& journal,
                         const std::string& run_dir, std::vector<WorkpackageView>* views);

// A workpackage that was not run here, as its plan knows it, with the log of a job that a person
// submitted by hand. All values of its point must be final (finish_planned()).
WorkpackageView planned_view(const Benchmark& benchmark, const Expander& expander,
                             const Workpackage& workpackage, const std::string& log);

// The definitions of a workpackage's parameters, by name: those that it was made of, where two sets
// have the same name. Of a workflow that does not have them any more (`-u`): what the sets of its
// step and of the steps before have by that name.
using DefinitionsByName = std::map<std::string, const Parameter*>;
DefinitionsByName definitions_of(const Benchmark& benchmark, const Journal::Stored& stored);

}  // namespace tally
