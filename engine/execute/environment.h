// Environments of operations: what a shell leaves to the next operation, kept as a difference.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

// What an environment changes in another one: a value to set, or nothing to remove the variable.
using EnvironmentChanges = std::map<std::string, std::optional<std::string>>;

// A complete environment by name.
using Environment = std::map<std::string, std::string>;

// The engine's own at this moment.
Environment current_environment();
Environment with_changes(const Environment& base, const EnvironmentChanges& changes);
// The same with a folder behind its PATH; empty: none.
Environment with_programs(Environment base, const std::string& programs);
// "NAME=value" entries, for a process.
std::vector<std::string> entries(const Environment& environment);

// What `after` differs from `base` in; variables that belong to a shell itself (PWD, OLDPWD, SHLVL,
// _) are left out.
EnvironmentChanges difference(const Environment& base, const Environment& after);

// As the journal keeps it: "NAME=value" to set, "NAME" to remove.
std::vector<std::string> pack_changes(const EnvironmentChanges& changes);
EnvironmentChanges unpack_changes(const std::vector<std::string>& entries);

// Reads what `export -p` of a POSIX shell, bash, ksh or zsh wrote. Nothing when it is cut short or
// not such a text. Variables whose names a shell cannot hold are taken over from `before`.
std::optional<Environment> parse_exports(std::string_view text, const Environment& before);
// Reads what `env -0` wrote (for shells that are not of that family).
Environment parse_env0(std::string_view text);

// The command line that runs `command` in `shell` and then writes the environment to `file`,
// whatever the command's last line is: a comment, `exit`, a here-document, `&`. Its exit status is
// the command's. Costs no further process in a shell of the POSIX family.
std::string with_capture(const std::string& command, const std::string& shell,
                         const std::string& file);
// Whether the shell is of the POSIX family, so that the file is in the form of `export -p`.
bool posix_shell(const std::string& shell);

}  // namespace tally
