// $name substitution with JUBE's rules (docs/reference: "Substitution").
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workflow/lookup.h"

namespace tally {

// Substitutes until nothing changes, for at most five rounds. A last pass removes the escaping.
std::string substitute(std::string_view text, const Lookup& lookup);
// The names that a text refers to, in order, each once.
std::vector<std::string> referenced_names(std::string_view text);
bool has_reference(std::string_view text);

}  // namespace tally
