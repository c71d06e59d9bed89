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

// A parameter of the user may have the name of one of the platform, or of a value that a kind of
// step gives to job scripts. The texts of the user see his, under the name. The text that Tally
// makes for jobs asks for the other one by this name.
inline constexpr std::string_view kPlatformPrefix = "tally_platform_";
std::string platform_name(std::string_view name);
// The name without the prefix. Empty: it has none.
std::string_view without_platform_prefix(std::string_view name);
// The answer of a lookup to platform_name() where the name alone is the user's and nobody gave jobs
// a value: the user's is not looked at.
const std::string& no_platform_value();

// The value that is meant for jobs: the platform's, or of the step's keys. Null: there is none.
const std::string* job_value(const Lookup& lookup, std::string_view name);
// Whether the name alone is a parameter of the user, which job_value() does not see.
bool is_users(const Lookup& lookup, std::string_view name);
// job_value() without white space at its ends. Empty: there is none.
inline std::string stripped_value(const Lookup& lookup, std::string_view name) {
  const std::string* found = job_value(lookup, name);
  return found != nullptr ? std::string(strip(*found)) : std::string();
}

using NamedValues = std::vector<std::pair<std::string, std::string>>;

}  // namespace tally
