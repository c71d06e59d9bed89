#include "engine/read/yaml_nodes.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tally {

const std::string& written_text(const YamlNode& text) {
  return text.written.empty() ? text.value : text.written;
}

const YamlNode* find_written(const YamlNode& mapping, std::string_view key) {
  for (const auto& [name, value] : mapping.entries)
    if (written_text(*name) == key) return value.get();
  return nullptr;
}

YamlPtr make_scalar(std::string text, const Mark& mark) {
  auto node = std::make_shared<YamlNode>();
  node->kind = YamlNode::Kind::scalar;
  node->mark = mark;
  node->value = std::move(text);
  return node;
}

YamlPtr make_mapping(const Mark& mark) {
  auto node = std::make_shared<YamlNode>();
  node->kind = YamlNode::Kind::mapping;
  node->mark = mark;
  return node;
}

void add(YamlNode* mapping, const char* key, YamlPtr value) {
  YamlPtr name = make_scalar(key, value->mark);
  mapping->entries.emplace_back(std::move(name), std::move(value));
}
void add_text(YamlNode* mapping, const char* key, const std::string& text, const Mark& mark) {
  add(mapping, key, make_scalar(text, mark));
}

bool is_text(const YamlNode& node) {
  return node.kind == YamlNode::Kind::scalar || node.kind == YamlNode::Kind::null;
}

bool is_list_of(const YamlNode& node, YamlNode::Kind kind) {
  return node.kind == YamlNode::Kind::sequence && !node.items.empty() &&
         std::all_of(node.items.begin(), node.items.end(),
                     [&](const YamlPtr& item) { return item->kind == kind; });
}

}  // namespace tally
