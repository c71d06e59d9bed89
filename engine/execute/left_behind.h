// Processes that a killed engine left running: known by a mark in their environment.
//
// Whatever an operation starts inherits the mark, also what leaves its session or its parent; no
// process number is recorded, so that starting costs nothing and no number can be another's by now.
#pragma once

#include <string>
#include <vector>

namespace tally {

// The variable in the environment of every operation's processes.
inline constexpr const char* process_mark = "TALLY_WORKPACKAGE";

// The mark's value, of one run on this host: its folder's number in the file system, which a folder
// keeps when it is moved, and its start.
std::string run_mark(const std::string& run_dir, const std::string& start);
std::string workpackage_mark(const std::string& run, int workpackage);

// A workpackage whose operation is to be done again.
struct Unfinished {
  std::string mark;
  // Its output files: a process whose environment was emptied (env -i) still holds one of them.
  std::vector<std::string> outputs;
};
// Ends what is left of them, and waits until it is gone: it would write into the files of the
// second try. Jobs of a scheduler, and this process with those that it was called by, are not
// ended.
void end_left_behind(const std::vector<Unfinished>& workpackages);

}  // namespace tally
