#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/read/yaml_tree.h"

namespace tally {

struct ExpressionError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

YamlPtr text_node(std::string value);
YamlPtr bool_node(bool value);
YamlPtr list_node(std::vector<YamlPtr> items);
// A number as written in an expression. Null if the text is not a number.
YamlPtr number_node(std::string_view text);

bool truth(const YamlNode& node);
bool equal(const YamlNode& a, const YamlNode& b);
// Compares numbers with numbers and texts with texts. Throws for anything else.
bool less(const YamlNode& a, const YamlNode& b);
bool contains(const YamlNode& container, const YamlNode& item);

// The value of a key in a mapping, or null.
YamlPtr find_entry(const YamlNode& map, const std::string& key);
YamlPtr subscript(const YamlNode& data, const YamlNode& key);
// The operators + - * / // % ** on numbers. On lists and texts, + joins and * repeats.
YamlPtr arithmetic(std::string_view op, const YamlPtr& a, const YamlPtr& b);
YamlPtr joined(const YamlNode& separator, const YamlNode& items);

// Finds a function by name: str, int, float, len, range, sorted, list, sum, min, max. Null if
// unknown.
using IncludeFunction = std::function<YamlPtr(const std::vector<YamlPtr>&)>;
const IncludeFunction* find_function(const std::string& name);

// The part of an !include after the file name: `FILE:["a"][0]:[i for i in _ if i["name"] == "x"]`.

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
// and the functions str, int, float, len, range, sorted, list, sum, min and max. Any other
// text is an error, and so is one that does not fit the data; *out is then null.
Status apply_include_expression(std::string_view expression, const YamlPtr& data,
                                const NestedIncludes& nested, YamlPtr* out);

}  // namespace tally
