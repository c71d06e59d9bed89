// Files, folders and paths. Every failure is one sentence that names the path and the reason.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace tally {

// "PATH: cannot write: No space left on device; free some space and try again". `reason` is
// an errno value.
Status file_error(const std::string& path, const char* what, int reason);
// The advice for a reason, and then: "; free some space and try again". Empty: nothing general.
std::string advice(int reason, const char* then);
// Whether the reason (an errno value) is a state of the host that may pass: no space, no file
// descriptors, no processes, an I/O error, a server that does not answer. The operation may then be
// tried again.
bool may_pass(int reason);
// Whether the reason of an error may pass that is about a file below `folder`, which is the
// engine's own. The engine made it, so that where it is not there, or may not be used, its file
// system is away: unmounted, unmounted by autofs, mounted read-only, exported to somebody else.
bool may_pass(const Status& error, const std::string& folder);
// Makes a folder and its missing parents. It is not an error if the folder exists.
Status make_directories(const std::string& path);
// Writes all bytes. False: errno says why not.
bool write_all(int file, std::string_view bytes);
// Writes all bytes to the file at `path` and closes it.
Status write_and_close(int file, const std::string& bytes, const std::string& path);
// Replaces a file atomically: readers see either the old or the new bytes.
Status write_file(const std::string& path, const std::string& bytes, int mode = 0644);
// Writes a file that the user names. A link stays and its target is replaced, which keeps its
// permissions; what is no regular file, such as a device or a FIFO, and /dev/stdout
// get the bytes.
Status write_named_file(const std::string& path, const std::string& bytes);
// The same of bytes that `put` writes to the descriptor that it gets.
using PutBytes = std::function<Status(int file)>;
Status write_named_file(const std::string& path, const PutBytes& put);
Status append_file(const std::string& path, const std::string& bytes);
Status read_file(const std::string& path, std::string* bytes);
// Reads a file and passes its bytes to `take`, one piece at a time.
Status read_file(const std::string& path,
                 const std::function<void(const char* bytes, size_t count)>& take);
// Prints a file of any size to standard output, and a newline if its last line has none.
Status print_file(const std::string& path);
// The absolute form of a path. `.` and `..` are removed textually; links are not followed.
std::string absolute_path(const std::string& path, const std::string& base = {});
// The path without `.`, `..` and doubled slashes, removed textually: folders of the path need not
// exist. "." for an empty path.
std::string normal_path(const std::string& path);
// The path with each `LINK/..` replaced by the folder that holds the link's target. For a path that
// the system would resolve, and that absolute_path() or normal_path() gets later.
std::string past_links(const std::string& path);
// absolute_path() of the file that the system opens under that name.
std::string opened_path(const std::string& path, const std::string& base = {});
// The relative path from folder `from` to `to`, such as "../../000000_x/work". Both are absolute.
std::string relative_path(const std::string& to, const std::string& from);
// The path of the first program with one of these names in these folders, then in those of PATH.
// Empty: there is none.
std::string find_program(const std::vector<std::string>& names,
                         std::vector<std::string> directories = {});
// The folder of the running program, which also holds tally-train. Empty: unknown.
std::string program_directory();
// The current time, such as "2026-11-21 01:18:53".
std::string time_stamp();

// The number with which a file begins. False: there is no such file, or it begins otherwise.
bool read_number(const std::string& path, double* value);
// The files that a shell's pattern matches, in the order of their names.
std::vector<std::string> paths_matching(const std::string& pattern);

}  // namespace tally
