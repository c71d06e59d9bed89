// Names with their values, in the form that every stage uses.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/text.h"

namespace tally {

// Looks up a name. Returns null when the name is unknown. The view must live until the call
// returns.
using Lookup = std::function<const std::string*(std::string_view name)>;

// The value without white space at its ends. Empty: the name is unknown.
inline std::string stripped_value(const Lookup& lookup, std::string_view name) {
  const std::string* found = lookup(name);
  return found != nullptr ? std::string(strip(*found)) : std::string();
}

using NamedValues = std::vector<std::pair<std::string, std::string>>;

}  // namespace tally
