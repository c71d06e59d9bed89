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

// Makes the next run's folder: one more than the highest id there is. Safe against others that
// start at the same moment in the same OUTPATH, from any host: making the folder is the lock.
// OUTPATH is made when it is missing.
Status create_run_directory(const std::string& outpath, RunDirectory* out);
// The runs of OUTPATH by id, ascending; empty when there are none.
std::vector<RunDirectory> list_runs(const std::string& outpath);
// configuration.xml (the text is the caller's) and timestamps.
Status write_run_files(const std::string& run_dir, const std::string& configuration);
// Records "change: now" in the run's timestamps; keeps "start:".
Status touch_timestamps(const std::string& run_dir);

}  // namespace tally
