// The home folders and variables that a path in an input file may contain besides parameters.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace tally {

// Returns an environment variable's value, or nothing when the variable is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

// Expands `~` and `~user` at the beginning, and `$NAME` and `${NAME}` from this process's
// environment. The rules are those of Python's os.path.expanduser and os.path.expandvars, as in
// JUBE. Unknown names stay as they are.
std::string expand_path(const std::string& path);
// Does so with the variables of another environment.
std::string expand_path(const std::string& path, const Variables& variables);

// The first `$NAME` that expand_path() left in the path, or "".
std::string unknown_variable(const std::string& path);

}  // namespace tally
