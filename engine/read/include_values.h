// What the expression of an !include computes with: YAML data, by Python's rules.
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
// A number as it is written in an expression; null when it is none.
YamlPtr number_node(std::string_view text);

bool truth(const YamlNode& node);
bool equal(const YamlNode& a, const YamlNode& b);
// Numbers with numbers, texts with texts; throws for anything else.
bool less(const YamlNode& a, const YamlNode& b);
bool contains(const YamlNode& container, const YamlNode& item);

// The value under a key of a mapping, or null.
YamlPtr find_entry(const YamlNode& map, const std::string& key);
YamlPtr subscript(const YamlNode& data, const YamlNode& key);
// + - * / // % **, on numbers; + joins lists and texts, * repeats them.
YamlPtr arithmetic(std::string_view op, const YamlPtr& a, const YamlPtr& b);
YamlPtr joined(const YamlNode& separator, const YamlNode& items);

// The functions that are known by name: str, int, float, len, range, sorted, list, sum, min, max.
using IncludeFunction = std::function<YamlPtr(const std::vector<YamlPtr>&)>;
const IncludeFunction* find_function(const std::string& name);

}  // namespace tally
