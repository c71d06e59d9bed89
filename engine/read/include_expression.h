// The part of an !include after the file name: `FILE:["a"][0]:[i for i in _ if i["name"] == "x"]`.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/read/yaml_tree.h"

namespace tally {

// Replaces nodes that are themselves an !include. Only the nodes that an expression takes are
// replaced, so that a file may include another part of itself.
struct NestedIncludes {
  std::function<YamlPtr(const YamlPtr&)> open;   // the node itself, or what its !include names
  std::function<YamlPtr(const YamlPtr&)> whole;  // the same, with everything inside it
};

// Applies `expression` to `data`. The expression may call the data `_`. JUBE passes the text to
// Python's eval. Here only a small part of Python is parsed, and nothing is executed: subscripts,
// .get(key), .join(list), lists, comprehensions with `if`, arithmetic, + and * on lists and texts,
// comparisons, in, not in, and, or, not, if-else, texts, numbers, True, False, None, map(f, list),
// and the functions str, int, float, len, range, sorted, list, sum, min and max. Returns null and
// sets *error if the text is anything else or does not fit the data.
YamlPtr apply_include_expression(std::string_view expression, const YamlPtr& data,
                                 const NestedIncludes& nested, std::string* error);

}  // namespace tally
