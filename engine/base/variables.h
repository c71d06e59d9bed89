// Environment variables and home folders, in paths and in the texts of `env`.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tally {

// The home folders and variables that a path in an input file may contain besides parameters.

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

// Environment variables in the texts of `env`. `$NAME` and `${NAME}` stand for variables, and an
// unset variable is empty. `$$` is a dollar, and so is a `$` before anything else. Every other
// character stands for itself.

// The text with the values of `variables`.
std::string expand_variables(std::string_view text, const Variables& variables);

// The text as a word of a POSIX shell, which the shell expands to the same value: also under
// `set -u`, and without running anything that the text names.
std::string variables_for_shell(std::string_view text);

// The variables that the text names.
std::set<std::string> variables_in(std::string_view text);

// Whether a shell can hold a variable of this name.
bool is_variable_name(std::string_view name);

// Names and texts as one text and back. It has one line for each name and no dollars, so that it
// can be the value of a parameter.
std::string pack_variables(const std::vector<std::pair<std::string, std::string>>& variables);
std::vector<std::pair<std::string, std::string>> unpack_variables(std::string_view packed);

}  // namespace tally
