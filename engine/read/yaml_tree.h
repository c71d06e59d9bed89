// YAML as a tree of typed nodes with marks, before it is known what the keys mean.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/base/mark.h"
#include "engine/read/yaml_scalar.h"

namespace tally {

struct YamlNode;
using YamlPtr = std::shared_ptr<YamlNode>;  // shared: an alias is the anchor's node again

struct YamlNode {
  enum class Kind { null, scalar, sequence, mapping };
  Kind kind = Kind::null;
  Mark mark;
  bool include = false;  // tagged !include; the value is the file and what to take from it
  std::string value;     // scalar: after PyYAML's typing and Python's str()
  ScalarType type = ScalarType::text;  // what PyYAML takes the scalar for
  std::string core;                    // what YAML 1.2 has in its place, where that differs
  std::vector<YamlPtr> items;
  std::vector<std::pair<YamlPtr, YamlPtr>> entries;  // keys are scalars; << is already merged

  // The value under a key of a mapping, or null.
  const YamlNode* find(const std::string& key) const;
};

// Parses one document. `file` is the number of `text` in the Sources, for marks. Returns null when
// the text is not YAML; other errors (duplicate keys, tags that would run code) still give a tree.
YamlPtr parse_yaml(uint32_t file, const std::string& text, Diagnostics& diagnostics);

}  // namespace tally
