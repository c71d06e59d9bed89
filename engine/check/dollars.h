// The `$names` in a text of the user, and where a text stands in a file. Private to check/.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/mark.h"

namespace tally {

struct DollarName {
  std::string name;
  std::string written;  // with the dollar, to find it in the source
  size_t at = 0;        // position of the dollar in the command
};

// The names that a text refers to, by string.Template's rules: $name, ${name}; $$ is a dollar.
std::vector<DollarName> dollar_names(std::string_view text);

// Finds `written`, which ends a word and begins one if it is a name, at or after `mark` in the
// source, within the next lines. Returns `mark` if it is not found.
Mark place_of(const Sources& sources, const Mark& mark, const std::string& written);

}  // namespace tally
