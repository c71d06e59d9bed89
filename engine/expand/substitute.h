// $name substitution with JUBE's rules (docs/reference: "Substitution").
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workflow/lookup.h"

namespace tally {

// No text may become longer than this. Texts that double each other would fill any memory.
inline constexpr size_t longest_text = size_t{16} << 20;

// Substitutes until nothing changes, for at most five rounds. A last pass removes the escaping. A
// result longer than longest_text is not complete.
std::string substitute(std::string_view text, const Lookup& lookup);
// Substitutes in a text in which something else reads the dollars that are left, as in `env`: `$$`
// and the dollars of values stay as they are.
std::string substitute_parameters(std::string_view text, const Lookup& lookup);
// The names in a text's $name and ${name}, in order, each once.
std::vector<std::string> dollar_names(std::string_view text);
bool has_dollar_name(std::string_view text);

}  // namespace tally
