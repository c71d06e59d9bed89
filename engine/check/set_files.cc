#include <fmt/format.h>

#include <filesystem>

#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/check/elements.h"
#include "engine/check/platform.h"
#include "engine/check/schema_check.h"
#include "engine/check/sets.h"
#include "engine/check/tags_and_selection.h"
#include "engine/read/input_files.h"
#include "engine/read/reader.h"

namespace tally {

namespace {

std::string absolute(const std::string& path, const std::string& from) {
  std::error_code error;
  auto full = std::filesystem::absolute(std::filesystem::path(from) / path, error);
  return error ? path : full.lexically_normal().string();
}

std::string absolute_directory(const std::string& path, const ReadOptions& options) {
  std::string directory = absolute(directory_of(path), options.directory);
  if (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  if (directory.size() > 2 && directory.compare(directory.size() - 2, 2, "/.") == 0) {
    directory.resize(directory.size() - 2);
  }
  return directory;
}

bool is_file(const std::string& path, const ReadOptions& options) {
  std::error_code error;
  return !path.empty() &&
         (options.stored.count(path) > 0 || !std::filesystem::is_directory(path, error));
}

// Finds the file by its name as written. Otherwise the name is that of a platform: NAME.yaml, or
// NAME/platform.yaml as in the shipped templates.
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

// The names without an ending under which find_set_file() finds a file.
std::vector<std::string> platforms_in(const std::vector<std::string>& directories) {
  std::vector<std::string> names;
  for (const std::string& directory : directories) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(directory.empty() ? "." : directory, error), end;
         !error && entry != end; entry.increment(error)) {
      std::error_code none;
      if (std::filesystem::is_regular_file(entry->path() / "platform.yaml", none)) {
        names.push_back(entry->path().filename());
      } else if (entry->path().extension() == ".yaml") {
        names.push_back(entry->path().stem());
      }
    }
  }
  return names;
}

}  // namespace

bool is_set(const std::string& name) {
  return name == "parameterset" || name == "substituteset" || name == "fileset" ||
         name == "patternset";
}

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

const SetFile* SetFiles::add_main(const Document& document, const Element& filtered_root) {
  auto file = std::make_unique<SetFile>();
  file->path = document.path;
  file->directory = absolute_directory(document.path, read_);
  file->document.path = document.path;
  file->document.is_xml = document.is_xml;
  file->document.root = filtered_root;
  add_platform_sets(&file->document.root, diagnostics_);
  file->include_paths = include_paths_of(filtered_root);
  read_.main_directory = directory_of(document.path);
  for (const std::string& path : file->include_paths) {
    read_.main_paths.push_back(join_path(read_.main_directory, expand_path(path)));
  }
  const SetFile* result = file.get();
  files_[document.path] = std::move(file);
  return result;
}

std::string SetFiles::hint_for(const std::string& name,
                               const std::vector<std::string>& directories) const {
  std::vector<std::string> all = directories;
  all.insert(all.end(), read_.builtin_path.begin(), read_.builtin_path.end());
  const bool bare = name.find_first_of("./") == std::string::npos;
  std::string hint = bare ? did_you_mean(name, platforms_in(all)) : std::string();
  return hint.empty() ? "searched in: " + join(directories, ", ") : hint;
}

const SetFile* SetFiles::open(const std::string& name, const SetFile& home, const Mark& mark) {
  if (name.empty()) return &home;
  std::string directory = directory_of(home.path);
  auto directories =
      include_directories(IncludeKind::set, read_, home.include_paths, directory, directory);
  std::string path = find_set_file(name, directories, read_);
  if (path.empty()) {
    diagnostics_.error(mark, fmt::format("file '{}' not found", name), hint_for(name, directories));
    return nullptr;
  }
  auto known = files_.find(path);
  if (known != files_.end()) return known->second.get();
  size_t errors = diagnostics_.error_count();
  auto file = std::make_unique<SetFile>();
  file->path = path;
  file->directory = absolute_directory(path, read_);
  file->document = read_document(path, read_, sources_, diagnostics_);
  // A file that uses Tally's keys is in Tally's language, and so are the sets that one takes.
  const Rules rules = rules_of(file->document.root, options_.called_as_jube);
  if (rules_.plain_values_as_written || rules.plain_values_as_written) {
    use_core_values(file->document, options_.plain_text, &file->document.root, diagnostics_);
  }
  const bool strict = options_.strict || rules.unknown_keys_are_errors;
  check_set_schema(file->document.root, strict, file->document.is_xml, diagnostics_);
  if (diagnostics_.error_count() > errors) {
    files_[path] = nullptr;
    return nullptr;
  }
  collect_tag_names(file->document.root, &used_tags_);
  if (!keeps_untagged_) remove_untagged(tags_, &file->document.root);
  add_platform_sets(&file->document.root, diagnostics_);
  file->include_paths = include_paths_of(file->document.root);
  const SetFile* result = file.get();
  files_[path] = std::move(file);
  return result;
}

}  // namespace tally
