// From a run's journal to what analyse/ and report/ work on.
#pragma once

#include <string>
#include <vector>

#include "engine/analyse/analyse.h"
#include "engine/expand/expand.h"
#include "engine/journal/journal.h"
#include "engine/plan/workpackage.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The run's workpackages with their parameters, types, units and built-ins. `finished` are those
// that came to an end, failed ones too, as in JUBE's tables; a note says which failed and why.
std::vector<PackageView> package_views(const Benchmark& benchmark, const Journal& journal,
                                       const std::string& run_dir);

// A workpackage that was not run here, as its plan knows it, with the log of a job that a person
// submitted by hand. All values of its point must be final (Expander::finish).
PackageView planned_view(const Benchmark& benchmark, const Expander& expander, const TextPool& pool,
                         const WorkPackage& package, const std::string& log);

// The parameters that a step's sets and its parents' sets define, by name.
std::map<std::string, const Parameter*> parameters_of(const Benchmark& benchmark,
                                                      const std::string& step);

}  // namespace tally
