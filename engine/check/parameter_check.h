// What is wrong with parameters whatever their values come to. Internal to check/.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Zipped lists of unequal length (as far as the file says), and parameters whose values refer to
// each other in a circle: JUBE leaves their $names as they are, which is a warning, and with
// `strict` an error.
void check_parameters(const Benchmark& benchmark, bool strict, Diagnostics& diagnostics);

// Gives a parameter of every set the value of --set name=value. A name that no set has and a value
// that is not of the parameter's type are errors.
void apply_set(const std::pair<std::string, std::string>& set, std::vector<Benchmark>* benchmarks,
               Diagnostics& diagnostics);

}  // namespace tally
