// Files, folders and paths. Every failure is one sentence that names the path and the reason.
#pragma once

#include <functional>
#include <string>

#include "engine/base/status.h"

namespace tally {

// "PATH: cannot write: No space left on device; free some space and continue the run". `reason`: an
// errno.
Status file_error(const std::string& path, const char* what, int reason);
// Makes a folder and those above it; fine when it is there.
Status make_directories(const std::string& path);
// Writes a file in one step: readers see the old or the new bytes, never half of them.
Status write_file(const std::string& path, const std::string& bytes, int mode = 0644);
Status append_file(const std::string& path, const std::string& bytes);
Status read_file(const std::string& path, std::string* bytes);
// Gives the bytes to `take`, a piece at a time.
Status read_file(const std::string& path,
                 const std::function<void(const char* bytes, size_t count)>& take);
// Absolute form of a path, lexically: `.` and `..` removed, links not followed.
std::string absolute_path(const std::string& path, const std::string& base = {});
// The way from folder `from` to `to`, both absolute: "../../000000_x/work".
std::string relative_path(const std::string& to, const std::string& from);
// 2026-11-21 01:18:53, of now.
std::string time_stamp();

}  // namespace tally
