#include <fmt/format.h>

#include <algorithm>
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
#include "engine/read/scheduler_file.h"

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

// Schedulers that have no table: Slurm is the engine's own, and `local` is none.
const std::vector<std::string>& schedulers_without_table() {
  static const std::vector<std::string> names = {"slurm", "local"};
  return names;
}

// Finds the file by its name as written. Otherwise the name is that of a platform: NAME.yaml, or
// NAME/platform.yaml as in the shipped templates, or of a scheduler's table.
std::string find_set_file(const std::string& name, const std::vector<std::string>& directories,
                          const ReadOptions& options) {
  std::string path = find_file(name, directories, options);
  if (is_file(path, options) || name.find_first_of("./") != std::string::npos) return path;
  for (const std::string& file : {name + ".yaml", name + "/platform.yaml", scheduler_file(name)}) {
    path = find_file(file, directories, options);
    if (is_file(path, options)) return path;
  }
  return {};
}

// The names without an ending under which find_set_file() finds a file.
std::vector<std::string> platforms_in(std::vector<std::string> directories) {
  std::vector<std::string> names;
  for (const std::string& directory : std::vector<std::string>(directories))
    directories.push_back(join_path(directory, scheduler_folder));
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
  file->include_paths = include_paths_of(filtered_root);
  add_platforms(file.get());
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
  std::vector<std::string> names = platforms_in(all);
  for (const std::string& scheduler : schedulers_without_table()) names.push_back(scheduler);
  std::string hint = bare ? did_you_mean(name, names) : std::string();
  if (!hint.empty()) return hint;
  const std::string searched = "searched in: " + join(directories, ", ");
  if (!bare) return searched;
  std::erase_if(names, [&](const std::string& one) {
    if (contains(schedulers_without_table(), one)) return false;
    const std::string path = find_file(scheduler_file(one), directories, read_);
    return table_of_file(path).empty() || !is_file(path, read_);
  });
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return searched + "; schedulers: " + join(names, ", ");
}

std::vector<std::string> SetFiles::set_folders(const SetFile& home) const {
  const std::string directory = directory_of(home.path);
  return include_directories(IncludeKind::set, read_, home.include_paths, directory, directory);
}

std::shared_ptr<const SchedulerTable> SetFiles::table(const std::string& scheduler) const {
  const auto known = tables_.find(scheduler);
  return known == tables_.end() ? nullptr : known->second;
}

std::shared_ptr<const SchedulerTable> SetFiles::read_table(const std::string& path) {
  const std::string name = table_of_file(path);
  const auto [known, fresh] = tables_.try_emplace(name);
  if (!fresh) return known->second;
  std::string text;
  if (Status s = load_text(path, read_, NamedBy::file, &text); !s) {
    diagnostics_.error({}, s.message());
    return nullptr;
  }
  const uint32_t file = sources_.add(path, text);
  known->second = read_scheduler_table(path, file, text, diagnostics_);
  return known->second;
}

const SchedulerTable* SetFiles::find_table(const Text& scheduler,
                                           const std::vector<std::string>& folders) {
  const std::string name(strip(scheduler.value));
  if (name.empty() || contains(schedulers_without_table(), name)) return nullptr;
  if (const auto known = tables_.find(name); known != tables_.end()) return known->second.get();
  const std::string path = find_file(scheduler_file(name), folders, read_);
  if (is_file(path, read_)) return read_table(path).get();
  diagnostics_.error(
      scheduler.mark,
      fmt::format("no table of a scheduler '{}': no file {}", name, scheduler_file(name)),
      hint_for(name, folders));
  return nullptr;
}

// The sets of the platforms that the file describes.
void SetFiles::add_platforms(SetFile* file) {
  const std::vector<std::string> folders = set_folders(*file);
  add_platform_sets(
      &file->document.root, [&](const Text& name) { return find_table(name, folders); },
      diagnostics_);
}

// A scheduler's table stands for a platform that has nothing of its own.
Document SetFiles::document_of(const std::string& path, const Mark& mark) {
  const std::string name = table_of_file(path);
  if (name.empty()) return read_document(path, read_, sources_, diagnostics_);
  Document document;
  document.path = path;
  document.root.name = "jube";
  if (!read_table(path)) return document;
  Element platform;
  platform.name = "platform";
  platform.mark = mark;
  for (const char* key : {"name", "scheduler"})
    platform.attributes.push_back({{key, mark}, {name, mark}});
  document.root.children.push_back(std::move(platform));
  return document;
}

const SetFile* SetFiles::open(const std::string& name, const SetFile& home, const Mark& mark) {
  if (name.empty()) return &home;
  const std::vector<std::string> directories = set_folders(home);
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
  file->document = document_of(path, mark);
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
  file->include_paths = include_paths_of(file->document.root);
  add_platforms(file.get());
  const SetFile* result = file.get();
  files_[path] = std::move(file);
  return result;
}

}  // namespace tally
