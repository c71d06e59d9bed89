// Whether a file is there, and which files are. The host has three answers: there, not there, and
// one that says nothing about the file: an I/O error, a server that does not answer, too many open
// files, a folder that may not be entered. That is an error, never "not there": who took it so
// would show values of other files.
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

// Whether the reason (an errno value) says that there is no such file.
bool means_not_there(int reason);
// "PATH: cannot look at it: Stale file handle".
Status look_error(const std::string& path, int reason);

enum class Links { follow, keep };
// Finds what is at the path; empty if it is not there.
Status look_at(const std::string& path, std::optional<struct stat>* found,
               Links links = Links::follow);
Status path_exists(const std::string& path, bool* there);
// Also true where the host cannot tell: who opens it is told why.
bool may_be_there(const std::string& path);
// False also for what is there and no folder.
Status folder_exists(const std::string& path, bool* there);
// Passes the entries of a folder, without `.` and `..`, to `take`. A folder that is not there has
// none.
Status each_entry(const std::string& folder, const std::function<void(const dirent&)>& take);
// Their names in byte order.
Status names_in(const std::string& folder, std::vector<std::string>* names);
// Adds the paths that match a pattern of the shell, in byte order. Finding none is not an error.
Status matching_paths(const std::string& pattern, std::vector<std::string>* paths);
// A pattern that matches this path alone, whatever characters it has.
std::string escaped_for_matching(const std::string& path);

}  // namespace tally
