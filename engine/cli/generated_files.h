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

// The script of the job that `members` (ids of workpackages in `packages`) share, as a run would
// write it: *folder/pack.job, *folder beside the members' folders.
Status generated_pack(const Benchmark& benchmark, const RunInfo& run,
                      const std::vector<WorkPackage>& packages, const std::vector<int>& members,
                      Expander& expander, const TextPool& pool, Evaluator& evaluator,
                      std::string* folder, FileBytes* file);

}  // namespace tally
