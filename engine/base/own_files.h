// Files below a folder that is the engine's own, such as that of a run. Whoever may write there may
// plant links. None below the folder is followed: neither at the end of a path nor on its way. The
// folder itself is reached as the user named it.
//
// A path lies below the folder if it begins with the folder's own text and a slash. Any other path
// is somewhere that the user chose, and is used as it is.
#pragma once

#include <sys/types.h>

#include <string>

#include "engine/base/status.h"

namespace tally {

// open() with O_CLOEXEC. Returns -1 and sets errno; ELOOP: a link is in the way.
int open_own(const std::string& root, const std::string& path, int flags, mode_t mode = 0);
// Makes a folder and its missing parents below `root`. It is not an error if the folder exists.
Status make_own_directories(const std::string& root, const std::string& path);
// Replaces a file atomically, as write_file(). A link in its place is replaced, too.
Status write_own_file(const std::string& root, const std::string& path, const std::string& bytes,
                      int mode = 0644);
Status append_own_file(const std::string& root, const std::string& path, const std::string& bytes,
                       int mode = 0644);
// Reads a regular file.
Status read_own_file(const std::string& root, const std::string& path, std::string* bytes);
Status rename_own(const std::string& root, const std::string& from, const std::string& to);
// Removes a file, a link or an empty folder. It is not an error if there is none.
Status remove_own(const std::string& root, const std::string& path);

}  // namespace tally
