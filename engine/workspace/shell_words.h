// What a shell text names: variables, paths, programs. A shell's own rules are not needed: what is found
// too much only makes a set-up run again.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workspace/environment.h"

namespace tally {

// The variables that a shell text names: $NAME, ${NAME...}.
std::set<std::string> shell_variables(std::string_view text);
// Replaces $NAME and ${NAME} in a text by the values of an environment. Unknown names stay.
std::string with_variables(std::string_view text, const Environment& environment);
// The words of a shell text, except the targets of output redirections.
std::vector<std::string> shell_words(const std::string& text);

}  // namespace tally
