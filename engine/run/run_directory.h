// The folders of runs on disk, in JUBE's layout:
//   OUTPATH/000000/{configuration.xml,timestamps,run.log,journal.sqlite,result/}
//   OUTPATH/000000/000003_step[_suffix]/{done|error,work/{stdout,stderr}}
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct RunDirectory {
  int id = 0;
  std::string path;  // OUTPATH/000000
};

// Returns OUTPATH of a benchmark: `given` (-o, relative to the current directory), or else the
// file's own, relative to the file, or else $JUBE_BENCHMARK_OUTPATH, or else `otherwise` beside the
// file. If the folder of the file cannot be written, or the file was installed with the program,
// the path is relative to the current directory. With `to_read` the folder beside the file is used
// if there is none in the current directory.
std::string outpath_of(const Benchmark& benchmark, const std::string& given, bool to_read = false,
                       const std::string& otherwise = "benchmark_runs");
// The id of the next run: the highest existing id plus one, also of removed runs whose history
// remains.
Status next_run_id(const std::string& outpath, int* id);
// Creates the folder of the next run. OUTPATH is created when it is missing. Creating the folder is
// the lock, so runs that start at the same moment in the same OUTPATH, from any host, get different
// ids.
Status create_run_directory(const std::string& outpath, RunDirectory* out);
// Creates the folder of the run with this id. It is an error if there is one.
Status create_run_directory(const std::string& outpath, int id, RunDirectory* out);
// The runs in OUTPATH, ascending by id. Empty when there are none.
Status list_runs(const std::string& outpath, std::vector<RunDirectory>* runs);
// Writes configuration.xml, whose text the caller gives, and timestamps.
Status write_run_files(const std::string& run_dir, const std::string& configuration);
// Records "change: now" in the run's timestamps and keeps "start:".
Status touch_timestamps(const std::string& run_dir);

// The group that owns the runs, from $JUBE_GROUP_NAME: all its members may read and continue them.
// Empty: no particular group.
class RunGroup {
 public:
  // Looks the group up, and makes all files that this process creates from now on writable for
  // their group (umask 002). Fails when the group does not exist, or when this user is not a
  // member.
  static Status from_environment(RunGroup* out);

  // Gives a folder to the group. `inherit`: new files in the folder belong to the group too.
  Status give(const std::string& folder, bool inherit) const;
  // Lets the group write a file that was created with fixed permissions, such as SQLite's files.
  void open_to(const std::string& file) const;

 private:
  long gid_ = -1;
};

}  // namespace tally
