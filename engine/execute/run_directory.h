// The folders of runs on disk, in JUBE's layout:
//   OUTPATH/000000/{configuration.xml,timestamps,run.log,journal.sqlite,result/}
//   OUTPATH/000000/000003_step[_suffix]/{done|error,work/{stdout,stderr}}
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"

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

// 7 -> "000007".
std::string padded_id(int id);
// "000003_step" or "000003_step_suffix".
std::string package_directory_name(int id, const std::string& step, const std::string& suffix);
// Makes a folder and those above it; fine when it is there.
Status make_directories(const std::string& path);
// Writes a file in one step: readers see the old or the new bytes, never half of them.
Status write_file(const std::string& path, const std::string& bytes, int mode = 0644);
Status append_file(const std::string& path, const std::string& bytes);
Status read_file(const std::string& path, std::string* bytes);
// Absolute form of a path, lexically: `.` and `..` removed, links not followed.
std::string absolute_path(const std::string& path, const std::string& base = {});
// The way from folder `from` to `to`, both absolute: "../../000000_x/work".
std::string relative_path(const std::string& to, const std::string& from);
// 2026-11-21 01:18:53, of now.
std::string time_stamp();

}  // namespace tally
