// The names a workpackage's texts may use, as far as a plan knows their values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/expand/expand.h"
#include "engine/expand/substitute.h"
#include "engine/plan/workpackage.h"
#include "engine/workflow/workflow.h"

namespace tally {

using NamedValues = std::vector<std::pair<std::string, std::string>>;

// jube_wp_*: id, padid, status, iteration, cycle, relpath, abspath and the parents' ids.
// `packages`: where the parents are found, by id.
NamedValues package_builtins(const Benchmark& benchmark, const Expander& expander,
                             const std::vector<WorkPackage>& packages, const WorkPackage& package);

// Looks a name up among the package's parameters and then in `builtins`, the run's and the step's.
// The arguments must outlive it.
Lookup package_lookup(const Expander& expander, const WorkPackage& package,
                      const NamedValues& builtins);
// The same without jube_*.
Lookup package_lookup(const Expander& expander, const WorkPackage& package);

// "000003_step".
std::string package_folder(const Benchmark& benchmark, const WorkPackage& package);

}  // namespace tally
