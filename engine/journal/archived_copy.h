// A run's journal as an archive has it: the same rows, on new pages, so that nothing is left of
// what was removed.
#pragma once

#include <functional>
#include <string>

#include "engine/base/status.h"
#include "engine/journal/journal.h"
#include "engine/workpackage/ended_file.h"

namespace tally {

// In an archive a workpackage's folder has this one for what lay in its own work_dir elsewhere.
inline constexpr const char* archived_work_dir = "work_dir";

struct ArchivedCopy {
  std::string run_dir;  // absolute; where the run is or was
  // Leaves secrets out of a value. Whether it changed it.
  std::function<bool(std::string* value)> clean;
  // Gives a workpackage's analysed files their paths and digests in the archive.
  std::function<Status(int workpackage, EndedFiles* files)> place;
};
// Makes the journal one of a run that is where its journal is.
Status forget_origin(const std::string& path);
Status write_archived_copy(const Journal& journal, const std::string& path,
                           const ArchivedCopy& how);

}  // namespace tally
