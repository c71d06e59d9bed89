// The files that a planned workpackage's substitution sets generate, above all job scripts.
#pragma once

#include <string>
#include <vector>

#include "engine/expand/expand.h"
#include "engine/workpackage/workpackage.h"
#include "engine/workspace/substitute_files.h"

namespace tally {

// Generates the files with the functions of the run itself. So a dry run and `tally script` show
// the same bytes that a run writes. *folder is the workpackage's folder, "000003_step_suffix".
Status generated_files(const Benchmark& benchmark, Workpackage workpackage, Expander& expander,
                       std::string* folder, std::vector<FileBytes>* files);

// Generates the file that the workpackage's job scripts source (platform's job_functions). *file
// stays empty when there is none.
Status generated_functions(const Benchmark& benchmark, Workpackage workpackage, Expander& expander,
                           FileBytes* file);

// Generates the script of the job that `members` share, as a run would write it. `members` are ids
// of workpackages in `workpackages`, which holds the whole plan.
struct GeneratedPack {
  std::string folder;  // in the same directory as the members' folders
  FileBytes script;    // pack.job in that folder
};
Status generated_pack(const Benchmark& benchmark, const std::vector<Workpackage>& workpackages,
                      const std::vector<int>& members, Expander& expander, GeneratedPack* pack);

}  // namespace tally
