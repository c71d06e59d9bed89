// Tag expressions: names joined by ! + | ^ ( ), as `tag: "gpu+!debug"`.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

// Evaluates `expression` for the tags set. Precedence, tightest first: ^ ! + | (JUBE's). Comma is
// the old spelling of "any of". Returns false and sets *error to "Tag string '...' not parseable."
// when it cannot be read.
bool evaluate_tags(std::string_view expression, const std::set<std::string>& tags, bool* value,
                   std::string* error);
// The names an expression mentions, in order of appearance.
std::vector<std::string> tag_names(std::string_view expression);

}  // namespace tally
