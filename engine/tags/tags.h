// Tag expressions: names combined with ! + | ^ ( ), as in `tag: "gpu+!debug"`.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

// Evaluates `expression` for the active tags. The precedence is JUBE's, tightest first: ^ ! + |. A
// comma is the old spelling of "any of". If the expression cannot be parsed, it returns false and
// sets *error to "Tag string '...' not parseable."
bool evaluate_tags(std::string_view expression, const std::set<std::string>& tags, bool* value,
                   std::string* error);
// The names in an expression, in order of appearance.
std::vector<std::string> tag_names(std::string_view expression);

}  // namespace tally
