// Tag expressions: names combined with ! + | ^ ( ), as in `tag: "gpu+!debug"`.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace tally {

// Evaluates `expression` for the active tags. The precedence is JUBE's, tightest first: ^ ! + |. A
// comma is the old spelling of "any of". An expression that cannot be parsed is an error, "Tag
// string '...' not parseable.", and leaves *value as it was.
Status evaluate_tags(std::string_view expression, const std::set<std::string>& tags, bool* value);
// The names in an expression, in order of appearance.
std::vector<std::string> tag_names(std::string_view expression);

}  // namespace tally
