// Names with their values, in the form that every stage uses.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tally {

// Looks up a name. Returns null when the name is unknown. The view must live until the call
// returns.
using Lookup = std::function<const std::string*(std::string_view name)>;

using NamedValues = std::vector<std::pair<std::string, std::string>>;

}  // namespace tally
