// Names and their values, as every stage passes them on.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tally {

// Looks a name up; nothing when unknown. The view must live until the call returns.
using Lookup = std::function<const std::string*(std::string_view name)>;

using NamedValues = std::vector<std::pair<std::string, std::string>>;

}  // namespace tally
