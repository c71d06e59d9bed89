// Whether a host allows so many processes. Beyond its limits fork() fails midway, or the whole host
// stops responding.
#pragma once

#include <string>

namespace tally::train {

// The reason why this host cannot start `processes` ranks with `threads` threads each, in one
// sentence with the limit; empty where it can. Limits: the system's process numbers and threads,
// the control groups' and the user's processes. `root`: where proc/ and sys/ are.
std::string process_shortage(int processes, int threads, const std::string& root = "/");

// Raises this process's limit of open files to what a rank among `ranks` needs, which is connected
// to all others. Ranks that it starts inherit the limit. Returns why that is not possible, in one
// sentence; else "".
std::string open_file_shortage(int ranks, int local_ranks);

}  // namespace tally::train
