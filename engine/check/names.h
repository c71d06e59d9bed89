// Whether the names in a benchmark lead somewhere. Internal to check/.
#pragma once

#include "engine/check/check.h"
#include "engine/check/select.h"

namespace tally {

// Sets, steps, analysers and columns that are named but not defined; steps that wait for each
// other. An analyser or result that names what a tag removed is a warning: JUBE runs the steps and
// says so when the analyser is used, and so do we.
void check_references(const Benchmark& benchmark, const RemovedNames& removed,
                      Diagnostics& diagnostics);

// `$names` in commands that no parameter and no built-in defines: a warning, for the shell may know
// them; with `strict` an error where neither the commands nor the environment give them a value.
void check_dollar_names(const Benchmark& benchmark, bool strict, const Sources& sources,
                        Diagnostics& diagnostics);

// The variables JUBE defines in every workpackage.
const std::vector<std::string>& builtin_names();
// What a step of one of Tally's kinds may name besides its parameters: StepKinds::values().
const std::vector<std::string>& kind_value_names();

}  // namespace tally
