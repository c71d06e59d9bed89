// Removes what runs have made: whole runs, and workpackages that are to be done again.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/journal/journal.h"
#include "engine/run/run_directory.h"

namespace tally {

Status remove_tree(const std::string& path);
// Another run may have links to the work of set-ups that this run did. Its programs may have their
// path built in, so that the work cannot be moved. `with`: runs that are removed, too. `part`: what
// is removed of the run.
Status check_not_needed(const std::string& run_dir, const std::string& part,
                        const std::vector<RunDirectory>& with);
// Resets the workpackages, so that `continue` does them again. Workpackages that were made from
// them are removed.
Status remove_workpackages(Journal* journal, const std::string& run_dir, const std::set<int>& ids);

}  // namespace tally
