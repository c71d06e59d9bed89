// What a path in an input file may name besides parameters.
#pragma once

#include <string>

namespace tally {

// `~` and `~user` at the beginning, and `$NAME` and `${NAME}` of this process's environment, as
// Python's os.path.expanduser and os.path.expandvars put them in (JUBE's way). What is not known
// stays as it is.
std::string expand_path(const std::string& path);

// A `$NAME` that expand_path() left over, or "".
std::string unknown_variable(const std::string& path);

}  // namespace tally
