// Environments of operations. The changes that a shell makes are kept for the next operation, as a
// difference.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workflow/step_kinds.h"

namespace tally {

// The changes that turn one environment into another. A variable with a value is set; a variable
// without one is removed.
using EnvironmentChanges = std::map<std::string, std::optional<std::string>>;

// A complete environment by name.
using Environment = std::map<std::string, std::string>;

// The engine's own environment at this moment.
Environment current_environment();
Environment with_changes(const Environment& base, const EnvironmentChanges& changes);
// Returns `base` with the folder `programs` appended to PATH. Empty `programs`: PATH is unchanged.
Environment with_programs(Environment base, const std::string& programs);
// "NAME=value" entries, for a process.
std::vector<std::string> entries(const Environment& environment);

// The changes that turn `base` into `after`. Variables that belong to the shell itself (PWD,
// OLDPWD, SHLVL, _) are left out.
EnvironmentChanges difference(const Environment& base, const Environment& after);

// The form that the journal keeps: "NAME=value" sets a variable, "NAME" removes it.
std::vector<std::string> pack_changes(const EnvironmentChanges& changes);
EnvironmentChanges unpack_changes(const std::vector<std::string>& entries);

// Reads the output of `export -p` from a POSIX shell, bash, ksh or zsh. Returns nothing when the
// text is cut short or has another form. Variables whose names a shell cannot hold are copied from
// `before`.
std::optional<Environment> parse_exports(std::string_view text, const Environment& before);
// Reads the output of `env -0`, for shells outside the POSIX family.
Environment parse_env0(std::string_view text);

// The exit status of with_capture()'s command line if the file cannot be opened. A command may end
// with it, too; then the file has been written, or `exec` took the shell's place.
inline constexpr int no_environment_status = 125;

// Returns a command line that runs `command` in `shell` and then writes the environment to `file`.
// It works whatever the last line of the command is: a comment, `exit`, a here-document, `&`, and
// beside a trap of the command's own for EXIT. Its exit status is that of the command. It starts no
// further process in a shell of the POSIX family.
std::string with_capture(const std::string& command, const std::string& shell,
                         const std::string& file);
// Whether the text has the word, as shells divide words.
bool has_shell_word(std::string_view text, std::string_view word);
// Whether the shell is of the POSIX family. If so, the file has the form of `export -p`.
bool posix_shell(const std::string& shell);

// Whether what the script of a pack has of this member shows a secret.
bool shows_secret_in_pack(const PackMember& member, const std::vector<std::string>& secrets);

}  // namespace tally
