// What happens on disk in one workpackage's folder.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/execute/files/substitute_files.h"
#include "engine/journal/journal.h"

namespace tally {

// A link at `path` to `target`, relative; fine when something is there already.
Status make_link(const std::string& target, const std::string& path);
// Copies or links one planned file into `work_dir`. A target that exists is left as it is.
// Permissions and times are kept; a folder is copied with all it holds.
Status place_file(const PlannedFile& file, const std::string& work_dir);
// Writes what substitute_files() made.
Status write_substituted(const std::vector<FileBytes>& files, const std::string& work_dir);
// The last `count` lines of a file, as they stand; empty when it cannot be read.
std::string last_lines(const std::string& path, size_t count);
// Sizes of the files now, for the journal; and cutting them back to them (files not listed: to
// nothing). A file that does not lie in one of `folders`, links followed, is somebody else's and
// stays as it is.
OutputSizes output_sizes(const std::vector<std::string>& paths);
void cut_back(const std::vector<std::string>& paths, const OutputSizes& sizes,
              const std::vector<std::string>& folders);
bool path_exists(const std::string& path);

}  // namespace tally
