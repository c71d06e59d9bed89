// File operations in the folder of one workpackage.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/journal/journal.h"
#include "engine/workspace/substitute_files.h"

namespace tally {

// Makes a relative link at `path` to `target`. Succeeds without change when `path` already exists.
Status make_link(const std::string& target, const std::string& path);
// The way of place_file() with a target that is there already.
enum class Existing {
  keep,          // it is taken, as in JUBE
  must_be_same,  // an error unless it is what would be put there: it is of somebody else
  own,           // a file or link that is not what would be put there is replaced
};
// Copies or links one planned file into `work_dir`. Permissions and times are kept. A folder is
// copied with its contents.
Status place_file(const PlannedFile& file, const std::string& work_dir, Existing existing);
// Writes the files that substitute_files() returned.
Status write_substituted(const std::vector<FileBytes>& files, const std::string& work_dir);
// The last `count` lines of a file, unchanged. Empty when the file cannot be read.
std::string last_lines(const std::string& path, size_t count);
// output_sizes() returns the current sizes of the files, for the journal. cut_back() truncates the
// files to these sizes, and to zero when a file is not listed. A file outside `folders`, after
// links are followed, belongs to somebody else and is left unchanged.
Status output_sizes(const std::vector<std::string>& paths, OutputSizes* sizes);
Status cut_back(const std::vector<std::string>& paths, const OutputSizes& sizes,
                const std::vector<std::string>& folders);
// Replaces a file by a copy of it. Processes that have the file open keep the old one.
Status detach_file(const std::string& path);

}  // namespace tally
