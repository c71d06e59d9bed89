// Checks that the names in a benchmark refer to something. Internal to check/.
#pragma once

#include "engine/check/check.h"
#include "engine/check/tags_and_selection.h"

namespace tally {

// Reports sets, steps, analysers and columns that are named but not defined, and steps that depend
// on each other in a cycle. An analyser or result that names something a tag removed is only a
// warning. JUBE, too, runs the steps and reports the problem when the analyser is used. With
// `strict`, names of values are checked as ValueNames says.
void check_named(const Benchmark& benchmark, const RemovedNames& removed, bool strict,
                 const Sources& sources, Diagnostics& diagnostics);
// Reports what analysers and results name without a definition, where the steps are those of a run.
void check_named_by_results(const Benchmark& benchmark, const RemovedNames& removed, bool strict,
                            const Sources& sources, Diagnostics& diagnostics);

// Reports `$names` in commands that neither a parameter nor a built-in variable defines. This is a
// warning, because the shell may know the name. With `strict` it is an error if neither the
// commands nor the environment give the name a value.
void check_dollar_names(const Benchmark& benchmark, bool strict, const Sources& sources,
                        Diagnostics& diagnostics);

}  // namespace tally
