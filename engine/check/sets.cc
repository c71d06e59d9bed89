#include "engine/check/sets.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/check/elements.h"
#include "engine/check/platform.h"

namespace tally {

namespace {

constexpr size_t kDeepestInit = 1000;

Text active_of(const Element& element) {
  Text active = attribute_text(element, "active");
  if (active.value.empty()) active.value = "true";
  return active;
}

FileCopy file_copy(const Element& element, const SetFile& home) {
  FileCopy copy;
  copy.link = element.name == "link";
  copy.source = text_of(element);
  copy.target = attribute_text(element, "name");
  copy.separator = element.get("separator", ",");
  copy.source_dir = strip(element.get("source_dir", element.get("directory")));
  copy.target_dir = strip(element.get("target_dir"));
  copy.internal = strip(element.get("rel_path_ref")) == "internal";
  copy.file_path = home.directory;
  copy.file_path_ref = expand_path(std::string(strip(element.get("file_path_ref"))));
  copy.active = active_of(element);
  return copy;
}

Prepare prepare(const Element& element) {
  Prepare p;
  p.command = text_of(element);
  p.stdout_file = strip(element.get("stdout"));
  p.stderr_file = strip(element.get("stderr"));
  p.work_dir = strip(element.get("work_dir"));
  p.active = active_of(element);
  return p;
}

Pattern pattern(const Element& element) {
  Pattern p;
  p.name = attribute_text(element, "name");
  p.value = text_of(element);
  p.mode = choice<PatternMode>(element.get("mode"),
                               {{"text", PatternMode::text},
                                {"python", PatternMode::python},
                                {"perl", PatternMode::perl},
                                {"shell", PatternMode::shell}},
                               PatternMode::pattern);
  p.type = value_type(element);
  p.unit = strip(element.get("unit"));
  if (const Attribute* given = element.find("default")) p.default_value = strip(given->value.value);
  p.dotall = boolean_or(element.get("dotall"), false);
  p.measured_over = attribute_text(element, "measured_over");
  return p;
}

}  // namespace

void SetBuilder::add_all(const Element& parent, const SetFile& home, Benchmark* benchmark) {
  for (const Element& child : parent.children) {
    if (!is_set(child.name)) continue;
    std::string name(strip(child.get("name")));
    if (name.empty()) continue;  // reported by the schema check
    if (!add_as(child, home, name, benchmark)) {
      diagnostics_.error(child.mark, fmt::format("{} '{}' is defined twice", child.name, name),
                         "sets of the file and of its benchmarks share their names");
    }
  }
}

bool SetBuilder::add_as(const Element& element, const SetFile& home, const std::string& name,
                        Benchmark* benchmark) {
  auto add = [&](auto& sets, auto set) {
    set.name = {name, element.mark};
    return sets.emplace(name, std::move(set)).second;
  };
  if (element.name == "parameterset") {
    return add(benchmark->parameter_sets, parameter_set(element, home));
  }
  if (element.name == "substituteset") {
    return add(benchmark->substitute_sets, substitute_set(element, home));
  }
  if (element.name == "fileset") return add(benchmark->file_sets, file_set(element, home));
  return add(benchmark->pattern_sets, pattern_set(element, home));
}

std::vector<Text> SetBuilder::add_from(const Text& from, const std::vector<Text>& names,
                                       bool pattern_sets, const SetFile& home,
                                       Benchmark* benchmark) {
  // Sets from other files get separate names, because JUBE keeps them apart from sets of the same
  // name in this file. All sets of one `from` get the same ending, so that `set$i` can choose among
  // them.
  const std::string ending = "@" + from.value;
  std::map<std::string, const Element*> found;
  for (const std::string& entry : split_strip(from.value, ",")) {
    std::vector<std::string> wanted = split_strip(entry, ":");
    const std::string file_name = wanted[0];
    wanted.erase(wanted.begin());
    if (wanted.empty()) {
      for (const Text& name : names) wanted.push_back(name.value);
    }
    const SetFile* file = files_.open(file_name, home, from.mark);
    if (!file) return {};
    for (const std::string& name : wanted) {
      add_foreign(name, {*file, from, pattern_sets}, &found, benchmark);
    }
  }
  if (rules_.names_are_the_users) give_to_platform(ending, kinds_, benchmark);
  std::vector<Text> result;
  for (const Text& name : names) {
    bool chosen_later = has_dollar(name.value);
    if (chosen_later || found.count(name.value) > 0) {
      result.push_back({name.value + ending, name.mark});
    } else if (!diagnostics_.has_errors()) {
      diagnostics_.error(name.mark, fmt::format("set '{}' is not among those taken from '{}'",
                                                name.value, from.value));
    }
  }
  return result;
}

void SetBuilder::add_foreign(const std::string& name, const Foreign& foreign,
                             std::map<std::string, const Element*>* found, Benchmark* benchmark) {
  const auto& [file, from, pattern_sets] = foreign;
  const Element* element = find_set(file.document.root, pattern_sets ? "patternset" : "", name);
  if (!element) {
    // The sets are made of a platform's description, and what is wrong with that has been told.
    if (diagnostics_.has_errors() && describes_platform(file.document.root)) return;
    diagnostics_.error(from.mark, fmt::format("no set '{}' in '{}'", name, file.path),
                       did_you_mean(name, set_names(file.document.root)));
    return;
  }
  auto inserted = found->emplace(name, element);
  if (inserted.second) {
    add_as(*element, file, name + "@" + from.value, benchmark);
  } else if (inserted.first->second != element) {
    diagnostics_.error(from.mark, fmt::format("two of these files define set '{}'", name),
                       "say which to take it from: FILE:SET");
  }
}

std::string SetBuilder::set_key(const std::string& kind, std::string_view name,
                                const SetFile& file) {
  return fmt::format("{} '{}' of {}", kind, name, file.path);
}

const Element* SetBuilder::initial(const Element& element, const SetFile& home,
                                   const SetFile** file) {
  Text init = attribute_text(element, "init_with");
  if (init.value.empty()) return nullptr;
  size_t colon = init.value.find(':');
  std::string name(strip(element.get("name")));
  std::string file_name(strip(std::string_view(init.value).substr(0, colon)));
  if (colon != std::string::npos) name = strip(std::string_view(init.value).substr(colon + 1));
  *file = files_.open(file_name, home, init.mark);
  if (!*file) return nullptr;
  const Element* found = find_set((*file)->document.root, element.name, name);
  if (!found) {
    diagnostics_.error(init.mark,
                       fmt::format("no {} '{}' in '{}'", element.name, name, (*file)->path),
                       did_you_mean(name, set_names((*file)->document.root)));
    return nullptr;
  }
  const std::string key = set_key(element.name, name, **file);
  if (contains(open_sets_, key)) {
    if (circular_.count(key) == 0) {
      diagnostics_.error(init.mark, fmt::format("init_with goes round in a circle: {} -> {}",
                                                join(open_sets_, " -> "), key));
    }
    circular_.insert(open_sets_.begin(), open_sets_.end());
    return nullptr;
  }
  const auto depth = depths_.find(found);
  const size_t below = depth == depths_.end() ? 0 : depth->second;
  if (open_sets_.size() + below >= kDeepestInit) {
    diagnostics_.error(init.mark,
                       fmt::format("init_with goes through more than {} sets", kDeepestInit));
    return nullptr;
  }
  return found;
}

SubstituteSet SetBuilder::substitute_set(const Element& element, const SetFile& home) {
  SubstituteSet set = initial_set(element, home, &SetBuilder::substitute_set);
  // Own entries override those from init_with: files by `out`, replacements by `source`.
  std::vector<IoFile> own_files;
  for (const Element& child : element.children) {
    if (child.name == "iofile") {
      IoFile io{attribute_text(child, "in"), attribute_text(child, "out"),
                strip(child.get("out_mode")) == "a"};
      auto& all = set.files;
      std::erase_if(all, [&](const IoFile& f) { return f.out.value == io.out.value; });
      own_files.push_back(std::move(io));
    } else if (child.name == "sub") {
      Substitution sub;
      sub.source = attribute_text(child, "source");  // stripped, as in JUBE
      sub.dest = child.find("dest") ? attribute_text(child, "dest") : text_of(child);
      sub.regex = strip(child.get("mode")) == "regex";
      // A leading newline means that the source replaces whole lines. A stripped source never has
      // one.
      if (strip(child.get("mode")) == "line") sub.source.value.insert(0, 1, '\n');
      // If sources are equal, the last one counts, at the position of the first, as in JUBE.
      auto& all = set.substitutions;
      const auto same = std::ranges::find_if(
          all, [&](const Substitution& s) { return s.source.value == sub.source.value; });
      if (same != all.end()) {
        *same = std::move(sub);
      } else {
        all.push_back(std::move(sub));
      }
    }
  }
  set.files.insert(set.files.end(), own_files.begin(), own_files.end());
  return set;
}

FileSet SetBuilder::file_set(const Element& element, const SetFile& home) {
  FileSet set = initial_set(element, home, &SetBuilder::file_set);
  for (const Element& child : element.children) {
    if (child.name == "copy" || child.name == "link") {
      set.entries.emplace_back(file_copy(child, home));
    } else if (child.name == "prepare") {
      set.entries.emplace_back(prepare(child));
    }
  }
  return set;
}

PatternSet SetBuilder::pattern_set(const Element& element, const SetFile& home) {
  PatternSet set = initial_set(element, home, &SetBuilder::pattern_set);
  for (const Element& child : element.children) {
    if (child.name != "pattern") continue;
    Pattern next = pattern(child);
    if (next.name.value.empty()) continue;
    auto known = std::ranges::find_if(
        set.patterns, [&](const Pattern& p) { return p.name.value == next.name.value; });
    if (known == set.patterns.end()) {
      set.patterns.push_back(std::move(next));
    } else {
      *known = std::move(next);
    }
  }
  return set;
}

}  // namespace tally
