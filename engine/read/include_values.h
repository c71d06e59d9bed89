// The values and operations of an !include's expression: YAML data with Python's rules.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace tally
