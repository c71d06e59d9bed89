// The files that a planned workpackage's substitution sets make: job scripts above all.
#pragma once

#include <string>
#include <vector>

#include "engine/execute/substitute_files.h"
#include "engine/expand/expand.h"
#include "engine/plan/workpackage.h"

namespace tally {

// Made with the functions of the run itself, so that a dry run and `tally script` show the bytes
// that a run writes. `packages` are all of the plan; *folder is the workpackage's,
// "000003_step_suffix".
Status generated_files(const Benchmark& benchmark, const RunInfo& run,
                       const std::vector<WorkPackage>& packages, WorkPackage package,
                       Expander& expander, const TextPool& pool, Evaluator& evaluator,
                       std::string* folder, std::vector<FileBytes>* files);

}  // namespace tally
