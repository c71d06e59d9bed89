#include "engine/check/tags_and_selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/check/elements.h"
#include "engine/tags/tags.h"

namespace tally {

namespace {

bool stays(const Element& element, const std::set<std::string>& tags) {
  const Attribute* tag = element.find("tag");
  if (!tag) return true;
  bool value = true;
  return !evaluate_tags(tag->value.value, tags, &value) || value;
}

// The texts of the children of `selection` that are called `name`, split.
std::vector<Text> selection_names(const Element& root, const std::string& name) {
  std::vector<Text> names;
  for (const Element& selection : root.children) {
    if (selection.name != "selection") continue;
    for (const Element& child : selection.children) {
      if (child.name != name) continue;
      for (std::string& each : split_strip(child.text.value, ",")) {
        if (!each.empty()) names.push_back({std::move(each), child.text.mark});
      }
    }
  }
  return names;
}

void check_expression(const Element& element, const std::set<std::string>& tags,
                      Diagnostics& diagnostics) {
  bool value = true;
  const Text& text = element.text;
  if (const Status parsed = evaluate_tags(text.value, tags, &value); !parsed) {
    diagnostics.error(text.mark, parsed.message(), "names joined by ! + | ^ and parentheses");
  } else if (!value) {
    std::vector<std::string> set(tags.begin(), tags.end());
    diagnostics.error(
        text.mark,
        fmt::format("check_tags '{}' does not hold for {}", strip(text.value),
                    set.empty() ? "a run without tags" : "the tags " + join(set, ", ")),
        "choose tags with -t so that it does");
  }
}

// Checks the form `tags: {forced, tag: [{name, _}]}`.
void check_descriptions(const Element& list, const std::set<std::string>& used,
                        Diagnostics& diagnostics) {
  std::set<std::string> described;
  for (const Element& tag : list.children) {
    if (tag.name != "tag") continue;
    std::string name(strip(tag.get("name")));
    described.insert(name);
    if (name.empty() || used.count(name) > 0) continue;
    diagnostics.error(tag.mark, fmt::format("tag '{}' is described but used nowhere", name),
                      did_you_mean(name, {used.begin(), used.end()}));
  }
  if (!boolean_or(list.get("forced"), false)) return;
  for (const std::string& name : used) {
    if (described.count(name) > 0) continue;
    diagnostics.error(list.mark, fmt::format("tag '{}' is used but not described", name),
                      "'forced' asks for a description of every tag");
  }
}

}  // namespace

std::set<std::string> tags_in_force(const Document& document, const CheckOptions& options) {
  std::set<std::string> tags(options.tags.begin(), options.tags.end());
  Element root = document.root;
  remove_untagged(tags, &root);
  for (Text& tag : selection_names(root, "tag")) tags.insert(std::move(tag.value));
  return tags;
}

void remove_untagged(const std::set<std::string>& tags, Element* element) {
  auto& children = element->children;
  std::erase_if(children, [&](const Element& child) { return !stays(child, tags); });
  for (Element& child : children) remove_untagged(tags, &child);
}

namespace {

void collect_names(const Element& element, RemovedNames* names) {
  for (const Element& child : element.children) {
    std::string name(strip(child.get("name")));
    if (!name.empty()) (*names)[child.name].insert(std::move(name));
    if (child.name == "benchmark") collect_names(child, names);
  }
}

}  // namespace

RemovedNames removed_names(const Element& whole, const Element& left) {
  RemovedNames all, there;
  collect_names(whole, &all);
  collect_names(left, &there);
  for (auto& [kind, names] : all) {
    for (const std::string& name : there[kind]) names.erase(name);
  }
  return all;
}

void collect_tag_names(const Element& element, std::set<std::string>* names) {
  auto add = [&](const std::string& expression) {
    for (std::string& name : tag_names(expression)) names->insert(std::move(name));
  };
  add(element.get("tag"));
  if (element.name == "check_tags") add(element.text.value);
  if (element.name == "parameter" && element.get("mode") == "tag") add(element.text.value);
  for (const Element& child : element.children) collect_tag_names(child, names);
}

void check_tag_rules(const Element& root, const TagRules& rules, const CheckOptions& options,
                     Diagnostics& diagnostics) {
  const auto& [tags, used, strict] = rules;
  std::set<std::string> known = used;  // plus the tags that the file describes
  for (const Element& child : root.children) {
    if (child.name == "check_tags") check_expression(child, tags, diagnostics);
    if (child.name != "tags") continue;
    check_descriptions(child, used, diagnostics);
    for (const Element& below : child.children) {
      if (below.name == "check_tags") check_expression(below, tags, diagnostics);
      if (below.name == "tag") known.insert(std::string(below.get("name")));
    }
  }
  // A parameter of mode tag may have any name.
  const bool open = std::ranges::any_of(
      used, [](const std::string& name) { return name.find('$') != std::string::npos; });
  std::vector<Text> given;
  for (const std::string& tag : options.tags) given.push_back({tag, {}});
  if (strict) {
    for (Text& tag : selection_names(root, "tag")) given.push_back(std::move(tag));
  }
  // `tally fleet --local` sets the tag, whether or not the file has something for it.
  const bool of_fleet = std::ranges::any_of(
      options.set, [](const auto& one) { return starts_with(one.first, "fleet."); });
  for (const auto& [tag, mark] : given) {
    if (used.count(tag) > 0 || options.stored_tags || (of_fleet && tag == "local")) continue;
    const std::string message = fmt::format("tag '{}' appears nowhere in the file", tag);
    std::string hint = did_you_mean(tag, {known.begin(), known.end()});
    if (hint.empty() && !known.empty())
      hint = "the file's tags: " + join({known.begin(), known.end()}, ", ");
    if (strict && !open) {
      diagnostics.error(mark, message, hint);
    } else {
      diagnostics.warning(mark, message, hint);
    }
  }
}

std::vector<const Element*> selected_benchmarks(const Element& root, const CheckOptions& options,
                                                Diagnostics& diagnostics) {
  std::vector<Text> only = selection_names(root, "only");
  std::vector<Text> exclude = selection_names(root, "not");
  // Each option replaces its own list.
  if (!options.only.empty()) only.clear();
  if (!options.exclude.empty() || options.of_run) exclude.clear();
  for (const std::string& name : options.only) only.push_back({name, {}});
  for (const std::string& name : options.exclude) exclude.push_back({name, {}});
  std::vector<std::string> names;
  for (const Element& child : root.children) {
    if (child.name == "benchmark") names.emplace_back(strip(child.get("name")));
  }
  const auto unknown = [&](const Text& name) { return !contains(names, name.value); };
  for (const Text& name : only) {
    if (unknown(name))
      diagnostics.error(name.mark, fmt::format("no benchmark is called '{}'", name.value),
                        did_you_mean(name.value, names));
  }
  // This is only a warning, because a tag may already have removed the benchmark.
  for (const Text& name : exclude) {
    if (unknown(name))
      diagnostics.warning(name.mark,
                          fmt::format("no benchmark is called '{}', to be left out", name.value),
                          did_you_mean(name.value, names));
  }
  auto has = [](const std::vector<Text>& list, const std::string& name) {
    return std::ranges::any_of(list, [&](const Text& t) { return t.value == name; });
  };
  std::vector<const Element*> chosen;
  size_t index = 0;
  for (const Element& child : root.children) {
    if (child.name != "benchmark") continue;
    const std::string& name = names[index++];
    if ((only.empty() || has(only, name)) && !has(exclude, name)) chosen.push_back(&child);
  }
  if (chosen.empty() && !diagnostics.has_errors()) {
    diagnostics.error(
        names.empty() ? root.mark : Mark{},
        names.empty() ? "the file holds no benchmark" : "the selection leaves no benchmark to run");
  }
  return chosen;
}

}  // namespace tally
