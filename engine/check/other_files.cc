#include "engine/check/other_files.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/check/elements.h"
#include "engine/check/platform.h"
#include "engine/check/tags_and_selection.h"
#include "engine/tags/tags.h"

namespace tally {
namespace {

// The files that an element names, as SetFiles::open() takes them.
std::vector<Text> files_of(const Element& element, bool in_step) {
  std::vector<Text> files;
  if (in_step && element.name == "platform") files.push_back(text_of(element));
  for (const Text& from : split_text(attribute_text(element, "from")))
    files.push_back({split_strip(from.value, ":")[0], from.mark});
  const Text init = attribute_text(element, "init_with");
  if (const size_t colon = init.value.find(':'); colon != std::string::npos)
    files.push_back({std::string(strip(init.value.substr(0, colon))), init.mark});
  const Text of_platform = attribute_text(element, "template");
  if (element.name == "platform" && !of_platform.value.empty()) files.push_back(of_platform);
  std::erase_if(files, [](const Text& file) { return file.value.empty(); });
  return files;
}

void open_all(const Element& element, const SetFile& home, SetFiles& files,
              std::set<const SetFile*>* seen) {
  for (const Element& child : element.children) {
    for (const Text& name : files_of(child, element.name == "step")) {
      const SetFile* file = files.open(name.value, home, name.mark);
      if (file != nullptr && seen->insert(file).second)
        open_all(file->document.root, *file, files, seen);
    }
    open_all(child, home, files, seen);
  }
}

// A platform of a step, with the tag expressions that have to hold for it.
struct Choice {
  const Element* platform;
  std::vector<std::string> conditions;
};

void collect_platforms(const Element& element, std::vector<std::string> conditions,
                       std::vector<Choice>* all) {
  if (const Attribute* tag = element.find("tag")) conditions.push_back(tag->value.value);
  for (const Element& child : element.children) {
    if (element.name == "step" && child.name == "platform") {
      all->push_back({&child, conditions});
      if (const Attribute* tag = child.find("tag"))
        all->back().conditions.push_back(tag->value.value);
    } else {
      collect_platforms(child, conditions, all);
    }
  }
}

bool hold(const std::vector<std::string>& conditions, const std::set<std::string>& tags) {
  return std::ranges::all_of(conditions, [&](const std::string& condition) {
    bool value = false;
    return evaluate_tags(condition, tags, &value) && value;
  });
}

// The tags in force with the fewest changes under which all conditions hold. None: there are no
// such tags, or the conditions name too many to try.
std::optional<std::set<std::string>> tags_for(const std::vector<std::string>& conditions,
                                              const std::set<std::string>& tags) {
  constexpr size_t kMost = 10;
  std::vector<std::string> names;
  for (const std::string& condition : conditions) {
    for (std::string& name : tag_names(condition))
      if (!contains(names, name)) names.push_back(std::move(name));
  }
  if (names.size() > kMost) return std::nullopt;
  std::optional<std::set<std::string>> best;
  size_t fewest = names.size() + 1;
  for (size_t changes = 0; changes < size_t{1} << names.size(); ++changes) {
    std::set<std::string> changed = tags;
    size_t count = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      if ((changes >> i & 1U) == 0) continue;
      ++count;
      if (changed.erase(names[i]) == 0) changed.insert(names[i]);
    }
    if (count >= fewest || !hold(conditions, changed)) continue;
    fewest = count;
    best = std::move(changed);
  }
  return best;
}

}  // namespace

std::set<std::string> tags_of_all_files(const OtherFiles& others) {
  Diagnostics unread;
  SetFiles files(others.options, others.rules, others.tags, others.sources, unread);
  const SetFile* home = files.add_main(others.document, others.whole);
  files.keep_untagged();
  std::set<const SetFile*> seen;
  open_all(others.whole, *home, files, &seen);
  std::set<std::string> names = files.used_tags();
  if (!others.document.is_xml) return names;
  // An <include> whose tag does not hold was not read.
  ReadOptions read = others.options.read;
  read.tags.reset();
  collect_tag_names(read_document(others.document.path, read, others.sources, unread).root, &names);
  return names;
}

void check_other_platforms(const OtherFiles& others, Diagnostics& diagnostics) {
  std::vector<Choice> choices;
  collect_platforms(others.whole, {}, &choices);
  std::set<std::pair<std::string, std::set<std::string>>> done;
  for (const Choice& choice : choices) {
    const Text from = text_of(*choice.platform);
    if (hold(choice.conditions, others.tags) || from.value.empty()) continue;
    const auto tags = tags_for(choice.conditions, others.tags);
    if (!tags || !done.emplace(from.value, *tags).second) continue;
    Element root = others.whole;
    remove_untagged(*tags, &root);
    SetFiles files(others.options, others.rules, *tags, others.sources, diagnostics);
    const SetFile* home = files.add_main(others.document, root);
    SetBuilder sets(files, others.rules, *others.options.kinds, diagnostics);
    std::vector<Text> names;
    for (const std::string& name : platform_sets()) names.push_back({name, from.mark});
    Benchmark unused;
    sets.add_from(from, names, false, *home, &unused);
  }
}

}  // namespace tally
