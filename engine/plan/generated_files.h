// The files that a planned workpackage's substitution sets make: job scripts above all.
#pragma once

#include <string>
#include <vector>

#include "engine/execute/files/substitute_files.h"
#include "engine/expand/expand.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// Made with the functions of the run itself, so that a dry run and `tally script` show the bytes
// that a run writes. *folder is the workpackage's, "000003_step_suffix".
Status generated_files(const Benchmark& benchmark, Workpackage workpackage, Expander& expander,
                       std::string* folder, std::vector<FileBytes>* files);

// The file that the workpackage's job scripts source (platform's job_functions); *file stays empty when
// there is none.
Status generated_functions(const Benchmark& benchmark, Workpackage workpackage, Expander& expander,
                           FileBytes* file);

// The script of the job that `members` (ids of workpackages in `workpackages`, all of the plan) share,
// as a run would write it: *folder/pack.job, *folder beside the members' folders.
Status generated_pack(const Benchmark& benchmark, const std::vector<Workpackage>& workpackages,
                      const std::vector<int>& members, Expander& expander, std::string* folder,
                      FileBytes* file);

}  // namespace tally
