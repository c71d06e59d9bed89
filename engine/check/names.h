// Whether the names in a benchmark lead somewhere. Internal to check/.
#pragma once

#include "engine/check/check.h"

namespace tally {

// Sets, steps, analysers and columns that are named but not defined; steps that wait for each
// other.
void check_references(const Benchmark& benchmark, Diagnostics& diagnostics);

// `$names` in commands that no parameter and no built-in defines: a warning, for the shell may know
// them.
void check_dollar_names(const Benchmark& benchmark, const Sources& sources,
                        Diagnostics& diagnostics);

// The variables JUBE defines in every workpackage.
const std::vector<std::string>& builtin_names();

}  // namespace tally
