// Converts the YAML tree to elements, by JUBE's rules for converting YAML to its XML.
#include <fmt/format.h>

#include <unordered_set>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/read/include_expression.h"
#include "engine/read/input_files.h"
#include "engine/read/reader.h"
#include "engine/read/schema.h"
#include "engine/read/short_form.h"
#include "engine/read/yaml_tree.h"

namespace tally {

namespace {

using Kind = YamlNode::Kind;

// Keys that still belong to the whole file when the file has a single benchmark and no key
// `benchmark`.
bool is_global_key(const std::string& key) {
  return key == "selection" || key == "include-path" || key == "check_tags" || key == "tags" ||
         key == "version";
}

class YamlReader {
 public:
  YamlReader(ReadContext& context, const std::string& path, std::vector<CoreValue>* core_values)
      : context_(context), path_(path), base_(directory_of(path)), core_values_(*core_values) {}

  void read(uint32_t file, Element* root) {
    const YamlPtr tree = parsed(file);
    if (!tree) return;
    collect_include_paths(tree);
    YamlPtr top = resolve(tree);
    if (!top) return;
    root->mark = top->mark;
    if (is_short_form(*top)) top = long_form(*whole(top), path_, folder(), context_.diagnostics);
    if (top->kind == Kind::mapping) {
      read_top_mapping(*top, root);
    } else if (top->kind == Kind::sequence) {
      make_elements("jube", {"benchmark", top->mark}, top, 0, &root->children);
    } else {
      context_.diagnostics.error(top->mark, "a benchmark file is a mapping of keys to values",
                                 "start with 'name: ...' and 'step: ...'");
    }
  }

 private:
  // The folder of the file, wherever the program was called: that of a run's stored input is known.
  std::string folder() const {
    const std::string& started = context_.options.directory;
    return started.empty() ? base_ : absolute_path(base_, started);
  }

  struct PartScope {
    ReadContext& context;
    ~PartScope() { context.open_parts.pop_back(); }
  };

  // The tree of a file, parsed once however often it is included. Null after an error.
  YamlPtr parsed(uint32_t file) {
    auto [known, added] = trees_.try_emplace(file);
    if (!added) return known->second;
    known->second = parse_yaml(file, context_.sources.text(file), context_.diagnostics);
    Seen seen;
    if (known->second) collect_core_values(*known->second, seen);
    return known->second;
  }

  // Nodes that were looked at. Aliases share nodes: a few lines of them can stand for more paths
  // than anybody can walk.
  using Seen = std::unordered_set<const YamlNode*>;

  void collect_core_values(const YamlNode& node, Seen& seen) {
    if (!seen.insert(&node).second) return;
    if (!node.core.empty() || !node.written.empty())
      core_values_.push_back({node.mark, node.value, core_of(node), written_of(node)});
    for (const YamlPtr& item : node.items) collect_core_values(*item, seen);
    for (const auto& [key, value] : node.entries) {
      collect_core_values(*key, seen);
      collect_core_values(*value, seen);
    }
  }

  static const std::string& core_of(const YamlNode& node) {
    return node.core.empty() ? node.value : node.core;
  }
  static const std::string& written_of(const YamlNode& node) {
    return node.written.empty() ? node.value : node.written;
  }

  // Accepts `include-path: dir`, a list of directories, or `path:` with either. They may come from
  // other files.
  void collect_include_paths(const YamlPtr& top) {
    for (const auto& [key, value] : top->entries) {
      if (key->value == "include-path") collect_paths(value);
    }
  }

  void collect_paths(const YamlPtr& unresolved) {
    const YamlPtr node = resolve(unresolved);
    if (!node) return;
    if (node->kind == Kind::scalar) include_paths_.push_back(node->value);
    for (const YamlPtr& item : node->items) collect_paths(item);
    for (const auto& [key, value] : node->entries) {
      if (key->value == "path" || key->value == "_") collect_paths(value);
    }
  }

  void read_top_mapping(const YamlNode& top, Element* root) {
    const bool has_benchmark = top.find("benchmark") != nullptr;
    Element single;
    single.name = "benchmark";
    single.mark = top.entries.empty() ? top.mark : top.entries.front().first->mark;
    for (const auto& [key, value] : top.entries) {
      if (has_benchmark || is_global_key(key->value)) {
        add_entry("jube", *key, value, root);
      } else {
        add_entry("benchmark", *key, value, &single);
      }
    }
    if (!has_benchmark) root->children.push_back(std::move(single));
  }

  // Adds one `key: value` of the element `parent`.
  void add_entry(const char* parent, const YamlNode& key, const YamlPtr& unresolved,
                 Element* element) {
    YamlPtr value = resolve(unresolved);
    if (!value) return;
    if (const std::string name = element_name(key.value); find_child(parent, name)) {
      make_elements(parent, {name, key.mark}, value, 0, &element->children);
      return;
    }
    const ElementRule* rule = find_element(parent);
    const KeyRule* known = find_key(parent, key.value);
    if (value->kind == Kind::scalar || value->kind == Kind::null) {
      element->attributes.push_back({{key.value, key.mark}, {value->value, value->mark}});
    } else if (known && known->rule == ValueRule::names && value->kind == Kind::sequence) {
      element->attributes.push_back({{key.value, key.mark}, joined(*value)});
    } else if (takes_points(parent, key.value) && value->kind == Kind::sequence) {
      add_points(parent, key, *value, element);
    } else if (known || (rule && rule->free_keys) || key.value == "tag") {
      context_.diagnostics.error(value->mark,
                                 fmt::format("'{}' of a {} takes one value, not a {}", key.value,
                                             rule ? rule->name : parent,
                                             value->kind == Kind::sequence ? "list" : "mapping"));
    } else {
      make_elements(parent, {key.value, key.mark}, value, 0, &element->children);
    }
  }

  // Adds an attribute for each value of the list.
  void add_points(const char* parent, const YamlNode& key, const YamlNode& list, Element* element) {
    if (list.items.empty())
      context_.diagnostics.error(list.mark,
                                 fmt::format("'{}' of a {} has an empty list", key.value, parent),
                                 "leave the key out, or give it a value");
    for (const YamlPtr& unresolved : list.items) {
      const YamlPtr item = resolve(unresolved);
      if (!item) continue;
      if (item->kind == Kind::scalar || item->kind == Kind::null) {
        element->attributes.push_back(
            {{key.value, key.mark}, {item->value, item->mark}, /*of_list=*/true});
      } else {
        context_.diagnostics.error(
            item->mark, fmt::format("a value in the list of '{}' is one value, not a {}", key.value,
                                    item->kind == Kind::sequence ? "list" : "mapping"));
      }
    }
  }

  // Joins a list of scalars to the comma-separated list that JUBE uses.
  Text joined(const YamlNode& list) {
    std::vector<std::string> parts, core, written;
    for (const YamlPtr& unresolved : list.items) {
      YamlPtr item = resolve(unresolved);
      if (!item) continue;
      if (item->kind == Kind::sequence || item->kind == Kind::mapping) {
        context_.diagnostics.error(item->mark, "a list of names holds names only");
      } else {
        parts.push_back(item->value);
        core.push_back(core_of(*item));
        written.push_back(written_of(*item));
      }
    }
    Text text{join(parts, ","), list.mark};
    if (written != parts || core != parts)
      core_values_.push_back({list.mark, text.value, join(core, ","), join(written, ",")});
    return text;
  }

  // Makes the elements that `name: node` means: a single one, or one per list item.
  void make_elements(const char* parent, const Text& name, const YamlPtr& unresolved, int nesting,
                     std::vector<Element>* out) {
    YamlPtr node = resolve(unresolved);
    if (!node || !context_.count_element(node->mark)) return;
    if (node->kind == Kind::sequence) {
      if (name.value == "zip" && nesting == 1) {
        out->push_back(make_leaf(name, joined(*node)));
        return;
      }
      if (nesting > 1) {
        context_.diagnostics.error(node->mark,
                                   fmt::format("'{}' is nested too deeply; a list of '{}' may "
                                               "hold one further list",
                                               name.value, name.value));
        return;
      }
      for (const YamlPtr& item : node->items) make_elements(parent, name, item, nesting + 1, out);
      return;
    }
    if (node->kind != Kind::mapping) {
      Element leaf = make_leaf(name, {node->value, node->mark});
      if (nesting > 0 && node->mark.known() && find_child(parent, name.value)) {
        leaf.mark = node->mark;
      }
      out->push_back(std::move(leaf));
      return;
    }
    make_from_mapping(parent, name, *node, nesting, out);
  }

  static Element make_leaf(const Text& name, Text text) {
    Element element;
    element.name = name.value;
    element.mark = name.mark;
    element.text = std::move(text);
    return element;
  }

  void make_from_mapping(const char* parent, const Text& name, const YamlNode& node, int nesting,
                         std::vector<Element>* out) {
    const ElementRule* rule = find_child(parent, name.value);
    const char* id = rule ? rule->id : "";
    Element element = make_leaf(name, {"", node.mark});
    // An item of a list gets its own place. An unknown key is reported as a whole.
    if (nesting > 0 && rule && !node.entries.empty()) {
      element.mark = node.entries.front().first->mark;
    }
    std::vector<Text> clones;
    bool cloned = false;
    for (const auto& [key, unresolved] : node.entries) {
      if (key->value != "_") {
        add_entry(id, *key, unresolved, &element);
        continue;
      }
      YamlPtr value = resolve(unresolved);
      if (!value) continue;
      if (value->kind == Kind::sequence) {
        cloned = true;
        for (const YamlPtr& item : value->items) add_clone(item, &clones);
      } else if (value->kind == Kind::mapping) {
        context_.diagnostics.error(value->mark, "'_' is the text of an element, not a mapping");
      } else {
        element.text = {value->value, value->mark};
      }
    }
    if (!cloned) {
      out->push_back(std::move(element));
      return;
    }
    for (Text& text : clones) {
      if (!context_.count_element(text.mark)) return;
      element.text = std::move(text);
      out->push_back(element);
    }
  }

  void add_clone(const YamlPtr& unresolved, std::vector<Text>* clones) {
    YamlPtr item = resolve(unresolved);
    if (!item) return;
    if (item->kind == Kind::sequence || item->kind == Kind::mapping) {
      context_.diagnostics.error(item->mark, "a list under '_' holds texts only");
    } else {
      clones->push_back({item->value, item->mark});
    }
  }

  // Returns the node itself, or the data that its !include names. Null after an error.
  YamlPtr resolve(const YamlPtr& node) {
    if (!node->include) return node;
    auto known = included_.find(node.get());
    if (known != included_.end()) return known->second;
    YamlPtr data = include(*node);
    included_[node.get()] = data;
    keep_.push_back(node);
    return data;
  }

  // Handles !include FILE[:SUBSCRIPT[:EXPRESSION]].
  YamlPtr include(const YamlNode& node) {
    std::vector<std::string> parts = split_strip(node.value, ":");
    if (parts[0].empty()) {
      context_.diagnostics.error(node.mark, "!include needs a file name");
      return nullptr;
    }
    if (parts.size() > 3) {
      context_.diagnostics.error(node.mark,
                                 "!include takes FILE:SUBSCRIPT:EXPRESSION, and no further colon");
      return nullptr;
    }
    std::vector<std::string> steps;
    if (parts.size() > 1 && !parts[1].empty()) steps.push_back("_" + parts[1]);
    if (parts.size() > 2 && !parts[2].empty()) steps.push_back(parts[2]);
    std::string path;
    uint32_t file = 0;
    auto directories = include_directories(IncludeKind::yaml_include, context_.options,
                                           include_paths_, base_, base_);
    const IncludeRequest request{parts[0], join({parts.begin() + 1, parts.end()}, ":"), node.mark};
    if (!context_.open_include(request, directories, &path, &file)) return nullptr;
    PartScope scope{context_};
    return taken(parsed(file), steps, path, node.mark);
  }

  // The part that `steps` take from the data of the file `path`. Null after an error.
  YamlPtr taken(YamlPtr data, const std::vector<std::string>& steps, const std::string& path,
                const Mark& mark) {
    if (!data) return nullptr;
    const size_t errors = context_.diagnostics.error_count();
    const NestedIncludes nested = {[this](const YamlPtr& n) { return opened(n); },
                                   [this](const YamlPtr& n) { return whole(n); }};
    for (const std::string& step : steps) {
      YamlPtr part;
      const Status applied = apply_include_expression(step, data, nested, &part);
      data = std::move(part);
      if (data) continue;
      if (context_.diagnostics.error_count() > errors) return nullptr;  // an include inside it
      context_.diagnostics.error(
          mark,
          fmt::format("cannot take {} from '{}': {}", step[0] == '_' ? step.substr(1) : step, path,
                      applied.message()),
          "subscripts, .get(), lists and comprehensions are read; other Python is not executed");
      return nullptr;
    }
    return whole(data);
  }

  // The node, or the data that its !include names. No data after an error.
  YamlPtr opened(const YamlPtr& node) {
    YamlPtr data = resolve(node);
    return data ? data : std::make_shared<YamlNode>();
  }

  YamlPtr whole(const YamlPtr& node) {
    YamlPtr data = node;
    Seen resolved;
    resolve_inside(data, resolved);
    return data;
  }

  // Replaces the includes inside included data. This happens while the part still counts as open,
  // so that parts that include each other are detected.
  void resolve_inside(YamlPtr& node, Seen& seen) {
    if (node->include) {
      node = opened(node);
      return;
    }
    if (!seen.insert(node.get()).second) return;
    for (YamlPtr& item : node->items) resolve_inside(item, seen);
    for (auto& entry : node->entries) resolve_inside(entry.second, seen);
  }

  ReadContext& context_;
  const std::string path_;
  const std::string base_;  // the path's folder
  std::vector<CoreValue>& core_values_;
  std::vector<std::string> include_paths_;
  std::map<uint32_t, YamlPtr> trees_;  // by the file's number
  std::map<const YamlNode*, YamlPtr> included_;
  std::vector<YamlPtr> keep_;  // keeps nodes alive, so that no address in included_ is reused
};

}  // namespace

void read_yaml(ReadContext& context, uint32_t file, const std::string& path, Document* document) {
  YamlReader(context, path, &document->core_values).read(file, &document->root);
}

}  // namespace tally
