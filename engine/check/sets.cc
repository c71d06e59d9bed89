#include "engine/check/sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "engine/base/text.h"
#include "engine/check/platform.h"
#include "engine/check/schema_check.h"
#include "engine/check/select.h"
#include "engine/check/values.h"
#include "engine/read/files.h"
#include "engine/read/reader.h"

namespace tally {

namespace {

constexpr int kDeepestInit = 20;

Text stripped(const Text& text) {
  return {std::string(strip(text.value)), text.mark};
}

Text text_of(const Element& element) {
  Text text = stripped(element.text);
  if (!text.mark.known()) text.mark = element.mark;
  return text;
}

Text attribute_text(const Element& element, const std::string& name) {
  const Attribute* found = element.find(name);
  return found ? stripped(found->value) : Text{};
}

Text active_of(const Element& element) {
  Text active = attribute_text(element, "active");
  if (active.value.empty()) active.value = "true";
  return active;
}

std::string absolute(const std::string& path) {
  std::error_code error;
  auto full = std::filesystem::absolute(path, error);
  return error ? path : full.lexically_normal().string();
}

std::string directory_from_here(const std::string& path) {
  std::string directory = absolute(directory_of(path));
  if (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  if (directory.size() > 2 && directory.compare(directory.size() - 2, 2, "/.") == 0) {
    directory.resize(directory.size() - 2);
  }
  return directory;
}

bool is_set(const std::string& name) {
  return name == "parameterset" || name == "substituteset" || name == "fileset" ||
         name == "patternset";
}

bool is_file(const std::string& path, const ReadOptions& options) {
  std::error_code error;
  return !path.empty() &&
         (options.stored.count(path) > 0 || !std::filesystem::is_directory(path, error));
}

// A file as it is named, or the platform of that name: NAME.yaml, or NAME/platform.yaml, which is
// where the shipped templates have theirs.
std::string find_set_file(const std::string& name, const std::vector<std::string>& directories,
                          const ReadOptions& options) {
  std::string path = find_file(name, directories, options);
  if (is_file(path, options) || name.find_first_of("./") != std::string::npos) return path;
  for (const char* ending : {".yaml", "/platform.yaml"}) {
    path = find_file(name + ending, directories, options);
    if (is_file(path, options)) return path;
  }
  return {};
}

// The set called `name` of one kind ("" is any kind a step uses) in a file, at its top or in a
// benchmark.
const Element* find_set(const Element& parent, const std::string& kind, const std::string& name) {
  for (const Element& child : parent.children) {
    bool right_kind =
        kind.empty() ? is_set(child.name) && child.name != "patternset" : child.name == kind;
    if (right_kind && strip(child.get("name")) == name) return &child;
  }
  for (const Element& child : parent.children) {
    if (child.name != "benchmark") continue;
    if (const Element* found = find_set(child, kind, name)) return found;
  }
  return nullptr;
}

std::vector<std::string> set_names(const Element& parent) {
  std::vector<std::string> names;
  for (const Element& child : parent.children) {
    if (is_set(child.name)) names.emplace_back(strip(child.get("name")));
    if (child.name != "benchmark") continue;
    for (std::string& name : set_names(child)) names.push_back(std::move(name));
  }
  return names;
}

ValueType value_type(const Element& element) {
  std::string type(strip(element.get("type")));
  if (type == "int") return ValueType::integer;
  if (type == "float") return ValueType::floating;
  return ValueType::string;
}

template <typename Enum>
Enum choice(const std::string& text, std::initializer_list<std::pair<const char*, Enum>> values,
            Enum otherwise) {
  std::string_view wanted = strip(text);
  for (const auto& [name, value] : values) {
    if (wanted == name) return value;
  }
  return otherwise;
}

Duplicate duplicate_of(const Element& element) {
  return choice<Duplicate>(
      element.get("duplicate"),
      {{"replace", Duplicate::replace}, {"concat", Duplicate::concat}, {"error", Duplicate::error}},
      Duplicate::none);
}

// JUBE joins the values of both as a sorted set of texts; scripts lose their mode by it.
void concatenate(const Parameter& next, Parameter* parameter) {
  const std::string separator = parameter->separator.empty() ? "," : parameter->separator;
  std::set<std::string> values;
  for (const Parameter* each : {static_cast<const Parameter*>(parameter), &next}) {
    for (std::string& value : split_strip(each->value.value, each->separator)) {
      values.insert(std::move(value));
    }
  }
  parameter->value = {join({values.begin(), values.end()}, separator), next.value.mark};
  parameter->separator = separator;
  parameter->mode = Mode::text;
}

bool same_options(const Parameter& a, const Parameter& b) {
  return a.separator == b.separator && a.type == b.type && a.unit == b.unit &&
         a.exported == b.exported && a.update == b.update;
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
  std::string reference(strip(element.get("file_path_ref")));
  if (!reference.empty()) copy.file_path = join_path(home.directory, reference);
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
  return p;
}

}  // namespace

const SetFile* SetFiles::add_main(const Document& document, const Element& filtered_root) {
  auto file = std::make_unique<SetFile>();
  file->path = document.path;
  file->directory = directory_from_here(document.path);
  file->document.path = document.path;
  file->document.is_xml = document.is_xml;
  file->document.root = filtered_root;
  add_platform_sets(&file->document.root, diagnostics_);
  file->include_paths = include_paths_of(filtered_root);
  const SetFile* result = file.get();
  files_[document.path] = std::move(file);
  return result;
}

const SetFile* SetFiles::open(const std::string& name, const SetFile& home, const Mark& mark) {
  if (name.empty()) return &home;
  std::string directory = directory_of(home.path);
  auto directories = include_directories(IncludeKind::set, options_.read, home.include_paths,
                                         directory, directory);
  std::string path = find_set_file(name, directories, options_.read);
  if (path.empty()) {
    diagnostics_.error(mark, fmt::format("file '{}' not found", name),
                       "searched in: " + join(directories, ", "));
    return nullptr;
  }
  auto known = files_.find(path);
  if (known != files_.end()) return known->second.get();
  size_t errors = diagnostics_.error_count();
  auto file = std::make_unique<SetFile>();
  file->path = path;
  file->directory = directory_from_here(path);
  ReadOptions options = options_.read;
  options.tags = std::vector<std::string>(tags_.begin(), tags_.end());
  file->document = read_document(path, options, sources_, diagnostics_);
  const bool strict = options_.strict || uses_tally_keys(file->document.root);
  check_set_schema(file->document.root, strict, file->document.is_xml, diagnostics_);
  if (diagnostics_.error_count() > errors) {
    files_[path] = nullptr;
    return nullptr;
  }
  collect_tag_names(file->document.root, &used_tags_);
  remove_untagged(tags_, &file->document.root);
  add_platform_sets(&file->document.root, diagnostics_);
  file->include_paths = include_paths_of(file->document.root);
  const SetFile* result = file.get();
  files_[path] = std::move(file);
  return result;
}

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
    return add(benchmark->parameter_sets, parameter_set(element, home, 0));
  }
  if (element.name == "substituteset") {
    return add(benchmark->substitute_sets, substitute_set(element, home, 0));
  }
  if (element.name == "fileset") return add(benchmark->file_sets, file_set(element, home, 0));
  return add(benchmark->pattern_sets, pattern_set(element, home, 0));
}

std::vector<Text> SetBuilder::add_from(const Text& from, const std::vector<Text>& names,
                                       bool pattern_sets, const SetFile& home,
                                       Benchmark* benchmark) {
  // Sets taken from elsewhere get names of their own, for JUBE keeps them apart from sets of the
  // same name here. The ending is the same for all of one `from`, so that `set$i` can choose among
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
      add_foreign(name, *file, from, pattern_sets, &found, benchmark);
    }
  }
  std::vector<Text> result;
  for (const Text& name : names) {
    bool chosen_later = name.value.find('$') != std::string::npos;
    if (chosen_later || found.count(name.value) > 0) {
      result.push_back({name.value + ending, name.mark});
    } else if (!diagnostics_.has_errors()) {
      diagnostics_.error(name.mark, fmt::format("set '{}' is not among those taken from '{}'",
                                                name.value, from.value));
    }
  }
  return result;
}

void SetBuilder::add_foreign(const std::string& name, const SetFile& file, const Text& from,
                             bool pattern_sets, std::map<std::string, const Element*>* found,
                             Benchmark* benchmark) {
  const Element* element = find_set(file.document.root, pattern_sets ? "patternset" : "", name);
  if (!element) {
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

const Element* SetBuilder::initial(const Element& element, const SetFile& home, int depth,
                                   const SetFile** file) {
  Text init = attribute_text(element, "init_with");
  if (init.value.empty()) return nullptr;
  if (depth >= kDeepestInit) {
    diagnostics_.error(init.mark, "init_with goes round in a circle");
    return nullptr;
  }
  size_t colon = init.value.find(':');
  std::string name(strip(element.get("name")));
  std::string file_name(strip(std::string_view(init.value).substr(0, colon)));
  if (colon != std::string::npos) name = strip(std::string_view(init.value).substr(colon + 1));
  *file = files_.open(file_name, home, init.mark);
  if (!*file) return nullptr;
  const Element* found = find_set((*file)->document.root, element.name, name);
  if (!found || found == &element) {
    diagnostics_.error(init.mark,
                       fmt::format("no {} '{}' in '{}'", element.name, name, (*file)->path),
                       did_you_mean(name, set_names((*file)->document.root)));
    return nullptr;
  }
  return found;
}

Parameter SetBuilder::parameter(const Element& element) {
  Parameter p;
  p.name = attribute_text(element, "name");
  p.value = text_of(element);
  p.mode = choice<Mode>(element.get("mode"),
                        {{"python", Mode::python},
                         {"perl", Mode::perl},
                         {"shell", Mode::shell},
                         {"env", Mode::env},
                         {"tag", Mode::tag}},
                        Mode::text);
  p.type = value_type(element);
  p.separator = element.get("separator", ",");
  p.unit = strip(element.get("unit"));
  p.exported = boolean_or(element.get("export"), false);
  p.update = choice<UpdateMode>(element.get("update_mode"),
                                {{"use", UpdateMode::use},
                                 {"step", UpdateMode::step},
                                 {"cycle", UpdateMode::cycle},
                                 {"always", UpdateMode::always}},
                                UpdateMode::never);
  p.duplicate = duplicate_of(element);
  return p;
}

void SetBuilder::add_parameter(Parameter next, const Element& element, const Element& set,
                               size_t inherited, std::vector<const Element*>* origins,
                               ParameterSet* result) {
  auto& all = result->parameters;
  auto known = std::find_if(all.begin(), all.end(),
                            [&](const Parameter& p) { return p.name.value == next.name.value; });
  if (known == all.end()) {
    all.push_back(std::move(next));
    origins->push_back(&element);
    return;
  }
  auto index = static_cast<size_t>(known - all.begin());
  const bool own = index >= inherited;
  const std::string name = next.name.value;
  const Mark here = next.name.mark;
  if (own && known->duplicate != next.duplicate) {
    diagnostics_.error(here, fmt::format("the definitions of parameter '{}' say different "
                                         "things about duplicates",
                                         name));
    diagnostics_.note(known->name.mark, "the other one is here");
    return;
  }
  Duplicate how = next.duplicate == Duplicate::none ? duplicate_of(set) : next.duplicate;
  if (how == Duplicate::error) {
    diagnostics_.error(here, fmt::format("parameter '{}' is defined twice", name),
                       "'duplicate: error' forbids it");
    diagnostics_.note(known->name.mark, "the first one is here");
  } else if (how == Duplicate::concat) {
    if (!same_options(*known, next)) {
      diagnostics_.error(here,
                         fmt::format("the definitions of parameter '{}' cannot be joined: they "
                                     "differ in type, separator, unit, export or update_mode",
                                     name));
      diagnostics_.note(known->name.mark, "the other one is here");
      return;
    }
    concatenate(next, &*known);
  } else {
    // A definition that a tag chooses over a plain one is meant; two plain ones look like a slip.
    const Element* before = (*origins)[index];
    if (own && how == Duplicate::none && !element.find("tag") && !before->find("tag")) {
      diagnostics_.warning(
          here, fmt::format("parameter '{}' is defined twice; the last one counts", name),
          "say 'duplicate: replace' to mean it, or 'concat' to have both values");
      diagnostics_.note(known->name.mark, "the first one is here");
    }
    *known = std::move(next);
    (*origins)[index] = &element;
  }
}

ParameterSet SetBuilder::parameter_set(const Element& element, const SetFile& home, int depth) {
  ParameterSet set;
  const SetFile* file = nullptr;
  if (const Element* base = initial(element, home, depth, &file)) {
    set = parameter_set(*base, *file, depth + 1);
  }
  const size_t inherited = set.parameters.size();
  std::vector<const Element*> origins(inherited, nullptr);
  std::vector<std::string> single_zip;
  for (const Element& child : element.children) {
    if (child.name == "parameter") {
      Parameter next = parameter(child);
      if (next.name.value.empty()) continue;
      add_parameter(std::move(next), child, element, inherited, &origins, &set);
    } else if (child.name == "where") {
      set.where.push_back(text_of(child));
    } else if (child.name == "zip") {
      std::vector<std::string> names = split_strip(child.text.value, ",");
      if (names.size() == 1) {
        single_zip.push_back(names[0]);  // `zip: [a, b]` arrives as one element a name
      } else {
        set.zip.push_back(std::move(names));
      }
    }
  }
  if (!single_zip.empty()) set.zip.push_back(std::move(single_zip));
  std::vector<std::string> names;
  for (const Parameter& p : set.parameters) names.push_back(p.name.value);
  std::set<std::string> zipped;
  for (const auto& group : set.zip) {
    for (const std::string& name : group) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        diagnostics_.error(element.mark,
                           fmt::format("zip names '{}', which is no parameter of this set", name),
                           did_you_mean(name, names));
      } else if (!zipped.insert(name).second) {
        diagnostics_.error(element.mark, fmt::format("zip names '{}' twice", name));
      }
    }
    if (group.size() == 1) {
      diagnostics_.error(element.mark,
                         fmt::format("zip needs two parameters or more, not '{}' alone", group[0]));
    }
  }
  return set;
}

SubstituteSet SetBuilder::substitute_set(const Element& element, const SetFile& home, int depth) {
  SubstituteSet set;
  const SetFile* file = nullptr;
  if (const Element* base = initial(element, home, depth, &file)) {
    set = substitute_set(*base, *file, depth + 1);
  }
  // Own entries override what init_with brought: files by `out`, replacements by `source`.
  auto drop = [](auto& all, const auto& matches) {
    all.erase(std::remove_if(all.begin(), all.end(), matches), all.end());
  };
  SubstituteSet own;
  for (const Element& child : element.children) {
    if (child.name == "iofile") {
      IoFile io{attribute_text(child, "in"), attribute_text(child, "out"),
                strip(child.get("out_mode")) == "a"};
      drop(set.files, [&](const IoFile& f) { return f.out.value == io.out.value; });
      own.files.push_back(std::move(io));
    } else if (child.name == "sub") {
      Substitution sub;
      const Attribute* source = child.find("source");
      if (source) sub.source = source->value;
      sub.dest = child.find("dest") ? attribute_text(child, "dest") : text_of(child);
      sub.regex = strip(child.get("mode")) == "regex";
      drop(set.substitutions,
           [&](const Substitution& s) { return s.source.value == sub.source.value; });
      own.substitutions.push_back(std::move(sub));
    }
  }
  set.files.insert(set.files.end(), own.files.begin(), own.files.end());
  set.substitutions.insert(set.substitutions.end(), own.substitutions.begin(),
                           own.substitutions.end());
  return set;
}

FileSet SetBuilder::file_set(const Element& element, const SetFile& home, int depth) {
  FileSet set;
  const SetFile* file = nullptr;
  if (const Element* base = initial(element, home, depth, &file)) {
    set = file_set(*base, *file, depth + 1);
  }
  for (const Element& child : element.children) {
    if (child.name == "copy" || child.name == "link") {
      set.entries.emplace_back(file_copy(child, home));
    } else if (child.name == "prepare") {
      set.entries.emplace_back(prepare(child));
    }
  }
  return set;
}

PatternSet SetBuilder::pattern_set(const Element& element, const SetFile& home, int depth) {
  PatternSet set;
  const SetFile* file = nullptr;
  if (const Element* base = initial(element, home, depth, &file)) {
    set = pattern_set(*base, *file, depth + 1);
  }
  for (const Element& child : element.children) {
    if (child.name != "pattern") continue;
    Pattern next = pattern(child);
    if (next.name.value.empty()) continue;
    auto known = std::find_if(set.patterns.begin(), set.patterns.end(),
                              [&](const Pattern& p) { return p.name.value == next.name.value; });
    if (known == set.patterns.end()) {
      set.patterns.push_back(std::move(next));
    } else {
      *known = std::move(next);
    }
  }
  return set;
}

}  // namespace tally
