// Finds processes that a killed engine left running, by a mark in their environment.
//
// Every process that an operation starts inherits the mark, even when it leaves its session or its
// parent. No process id is recorded, so starting costs nothing and a reused id cannot be mistaken.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tally {

// The variable in the environment of every operation's processes.
inline constexpr const char* process_mark = "TALLY_WORKPACKAGE";

// The mark's value for one run on this host. It consists of the inode of the run's folder, which
// survives a move of the folder, and the start of the run.
std::string run_mark(const std::string& run_dir, const std::string& start);
std::string workpackage_mark(const std::string& run, int workpackage);

// The workpackage of a run whose operation started the process, if the mark says so.
std::optional<int> workpackage_of(int pid, const std::string& run);
bool is_descendant(int pid, int ancestor);

// A workpackage whose operation must run again.
struct Unfinished {
  std::string mark;
  // Its output files. A process whose environment was emptied (env -i) still has one of them open.
  std::vector<std::string> outputs;
};
// Ends the remaining processes of these workpackages and waits until they are gone. Otherwise they
// would write into the files of the second attempt. Jobs of a scheduler are left alone; so are this
// process and its ancestors.
void end_left_behind(const std::vector<Unfinished>& workpackages);

}  // namespace tally
