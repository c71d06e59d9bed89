// Finds mistakes in parameters that do not depend on their computed values. Internal to check/.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Reports zipped lists of unequal length, where the file alone shows it, and parameters whose
// values refer to each other in a cycle. JUBE leaves the $names of such a cycle as they are. The
// cycle is a warning, or with `strict` an error.
void check_parameters(const Benchmark& benchmark, bool strict, Diagnostics& diagnostics);

// Reports values of the file that are not of their parameter's type. Runs of an earlier version may
// have some, whose workpackages failed.
void check_types(const Benchmark& benchmark, Diagnostics& diagnostics);

// Gives a parameter the value of --set name=value in every set that has it. It is an error if no
// set has the parameter, or if the value is not allowed or not of the parameter's
// type.
void apply_set(const std::pair<std::string, std::string>& set, std::vector<Benchmark>* benchmarks,
               Diagnostics& diagnostics);

}  // namespace tally
