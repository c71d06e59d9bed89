// The folders of runs on disk, in JUBE's layout:
//   OUTPATH/000000/{configuration.xml,timestamps,run.log,journal.sqlite,result/}
//   OUTPATH/000000/000003_step[_suffix]/{done|error,work/{stdout,stderr}}
#pragma once

#include <string>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/status.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

struct RunDirectory {
  int id = 0;
  std::string path;  // OUTPATH/000000
};

// Creates the folder of the next run. Its id is the highest existing id plus one,
// also of removed runs whose history remains. OUTPATH is
// created when it is missing. Creating the folder is the lock, so runs that start at the same
// moment in the same OUTPATH, from any host, get different ids.
Status create_run_directory(const std::string& outpath, RunDirectory* out);
// The runs in OUTPATH, ascending by id. Empty when there are none.
std::vector<RunDirectory> list_runs(const std::string& outpath);
// Writes configuration.xml, whose text the caller gives, and timestamps.
Status write_run_files(const std::string& run_dir, const std::string& configuration);
// Records "change: now" in the run's timestamps and keeps "start:".
Status touch_timestamps(const std::string& run_dir);

}  // namespace tally
