// Finds processes that a killed engine left running: by a mark in their environment, and by the
// sessions that the journal says its operations started.
//
// Every process that an operation starts inherits the mark, even when it leaves its session or its
// parent. A process whose environment was emptied (env -i) is found by its session or its parent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

// The variable in the environment of every operation's processes.
inline constexpr const char* process_mark = "TALLY_WORKPACKAGE";

// The mark's value for one run on this host. It consists of the inode of the run's folder, which
// survives a move of the folder, and the start of the run.
std::string run_mark(const std::string& run_dir, const std::string& start);
std::string workpackage_mark(const std::string& run, int workpackage);

// The workpackage of a run whose operation started the process, if the mark says so.
std::optional<int> workpackage_of(int pid, const std::string& run);
// Whether a process is `ancestor` or came from it; nothing when it, or a process between them, has
// ended.
std::optional<bool> is_descendant(int pid, int ancestor);

// This boot of this host, seen from this pid namespace.
std::string boot_mark();
// Tells a process from others with the same id, in any boot and namespace. Empty: it is not known.
std::string start_mark(const std::string& boot, int pid);

// A workpackage whose operation must run again.
struct Unfinished {
  struct Session {
    int pid = 0;        // of its leader, the process that the engine started
    std::string start;  // start_mark()
  };
  std::string mark;
  std::vector<Session> sessions;
  std::vector<std::string> outputs;  // its output files
  // Output files outside the run, which others may have open, too, without being reported.
  std::vector<std::string> outside;
};
// A process that has an output file open (as its standard output or error) and is not the run's.
struct Foreign {
  int pid = 0;
  std::string command, file;
};
// Ends the remaining processes of these workpackages and waits until they are gone. Otherwise they
// would write into the files of the second attempt. Jobs of a scheduler are left alone. So are this
// process, its ancestors, and the processes that this run did not start; `foreign` gets those of
// them that write to an output file.
Status end_left_behind(const std::vector<Unfinished>& workpackages, std::vector<Foreign>* foreign);

}  // namespace tally
