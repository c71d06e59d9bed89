// YAML as a tree of typed nodes with marks, before the keys have a meaning.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/read/yaml_scalar.h"

namespace tally {

struct YamlNode;
using YamlPtr = std::shared_ptr<YamlNode>;  // shared: an alias is the same node as its anchor

struct YamlNode {
  enum class Kind { null, scalar, sequence, mapping };
  Kind kind = Kind::null;
  Mark mark;
  bool include = false;  // tagged !include; the value is the file and the part to take from it
  std::string value;     // scalar: after PyYAML's typing and Python's str()
  ScalarType type = ScalarType::text;  // the scalar's type in PyYAML
  // The forms of a scalar that PyYAML converts: the text as it is written, and the value in YAML
  // 1.2 (for keys that take a number). Empty where they do not differ from `value`.
  std::string written, core;
  std::vector<YamlPtr> items;
  std::vector<std::pair<YamlPtr, YamlPtr>> entries;  // keys are scalars; << is already merged

  // The value of a key in a mapping, or null.
  const YamlNode* find(const std::string& key) const;
};

// Parses one document. `file` is the number of `text` in the Sources, for marks. Returns null if
// the text is not valid YAML. After other errors (duplicate keys, tags that would run code) it
// still returns a tree.
YamlPtr parse_yaml(uint32_t file, const std::string& text, Diagnostics& diagnostics);

// Reading and making of YAML trees, for those who write one out as another.

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
