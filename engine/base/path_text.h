// What a path in an input file may name besides parameters.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace tally {

// An environment variable's value; nothing when it is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

// `~` and `~user` at the beginning, and `$NAME` and `${NAME}` of this process's environment, as
// Python's os.path.expanduser and os.path.expandvars put them in (JUBE's way). What is not known
// stays as it is.
std::string expand_path(const std::string& path);
// The same with the variables of another environment.
std::string expand_path(const std::string& path, const Variables& variables);

// A `$NAME` that expand_path() left over, or "".
std::string unknown_variable(const std::string& path);

}  // namespace tally
