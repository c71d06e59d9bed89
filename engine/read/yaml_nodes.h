// Reading and making of YAML trees, for those who write one out as another.
#pragma once

#include <string>
#include <string_view>

#include "engine/read/yaml_tree.h"

namespace tally {

// The text of a scalar as it is written: PyYAML makes True of `on`.
const std::string& written_text(const YamlNode& scalar);
// The value of the key that is written so, or null.
const YamlNode* find_written(const YamlNode& mapping, std::string_view key);

bool is_text(const YamlNode& node);
// Whether it is a list of such nodes alone, and not an empty one.
bool is_list_of(const YamlNode& node, YamlNode::Kind kind);

YamlPtr make_scalar(std::string text, const Mark& mark);
YamlPtr make_mapping(const Mark& mark);
// Adds `key: value`. The key has the mark of the value.
void add(YamlNode* mapping, const char* key, YamlPtr value);
void add_text(YamlNode* mapping, const char* key, const std::string& text, const Mark& mark);

// Calls `take` for each text in the node, keys left out.
template <typename Take>
void each_text(const YamlNode& node, const Take& take) {
  if (node.kind == YamlNode::Kind::scalar) take(written_text(node));
  for (const YamlPtr& item : node.items) each_text(*item, take);
  for (const auto& [key, value] : node.entries) each_text(*value, take);
}

}  // namespace tally
