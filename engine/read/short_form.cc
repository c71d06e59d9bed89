#include "engine/read/short_form.h"

#include <algorithm>

#include "engine/read/schema.h"
#include "engine/read/yaml_nodes.h"

namespace tally {

std::span<const ShortKey> short_keys() {
  static constexpr ShortKey keys[] = {
      {"parameters", "names with values",
       "`NAME: VALUE`, `NAME: [VALUES]` for several points, or `NAME: {...}` with the keys of a "
       "`parameter`. A list of such mappings is chosen from by `tag`."},
      {"where", "expression", "As in a `parameterset`."},
      {"zip", "list of names", "As in a `parameterset`."},
      {"build", "command, list of commands, or keys of a `step`",
       "A step of `kind: build`, called `build`: done once for the values of the parameters that "
       "it "
       "names, and again only when something changed."},
      {"run", "command, or keys of a `step`",
       "A step of `kind: run`, called `run`, with this `launch`. What `build` made lies in the "
       "folder `build`."},
      {"on", "name or file", "The run's `platform`, as `slurm`."},
      {"files", "list of names",
       "Files and folders beside the workflow that the run finds in its folder, as links, and the "
       "build as copies. What a command names as a word is there without it, as a copy."},
      {"metrics", "names with patterns",
       "`NAME: PATTERN`, or `NAME: {_: PATTERN, ...}` with the keys of a `pattern` and of its "
       "`column`, and `file` where it is not stdout. A metric is a float unless its `type` says "
       "otherwise; with `repeat` its median and interval are shown."},
      {"rows", "name or list of names",
       "Metrics: each match of the first makes a row of the table, as in an `analyser`."},
      {"chart", "keys of a `chart`", "As in a `result`."},
  };
  return keys;
}

// Keys of steps that Tally adds to JUBE's, except those that the short form has words of its own for.
bool is_run_key(std::string_view key) {
  for (const char* own : {"kind", "launch", "platform", "input", "reuse"})
    if (key == own) return false;
  if (const ElementRule* element = find_child("step", key))
    return element->language == Language::tally;
  const KeyRule* rule = find_key("step", key);
  return rule != nullptr && rule->language == Language::tally;
}

namespace {

bool uses_own_keys(std::string_view element, const YamlNode& node) {
  for (const YamlPtr& item : node.items)
    if (uses_own_keys(element, *item)) return true;
  for (const auto& [key, value] : node.entries) {
    if (const ElementRule* child = find_child(element, element_name(key->value))) {
      if (child->language == Language::tally || uses_own_keys(child->id, *value)) return true;
    } else if (const KeyRule* rule = find_key(element, key->value)) {
      if (rule->language == Language::tally) return true;
    }
  }
  return false;
}

// Whether the file has parameters or metrics of the short form and nothing else that JUBE would read:
// its `run` is missing.
bool lacks_run(const YamlNode& top) {
  for (const auto& [key, value] : top.entries) {
    const ElementRule* element = find_child("benchmark", element_name(key->value));
    if (element == nullptr) element = find_child("jube", element_name(key->value));
    if (element != nullptr && std::string_view(element->name) != "comment") return false;
  }
  return find_written(top, "name") != nullptr && find_written(top, "parameters") != nullptr &&
         find_written(top, "metrics") != nullptr;
}

}  // namespace

bool is_short_form(const YamlNode& top) {
  if (top.kind != YamlNode::Kind::mapping || find_written(top, "benchmark") != nullptr)
    return false;
  const bool run = find_written(top, "run") != nullptr;
  if (run && find_written(top, "step") == nullptr) return true;
  if (lacks_run(top)) return true;
  const auto keys = short_keys();
  const bool any = std::any_of(keys.begin(), keys.end(), [&](const ShortKey& key) {
    return find_written(top, key.key) != nullptr;
  });
  return any && uses_own_keys("benchmark", top);
}

}  // namespace tally
