#include "engine/workspace/substitute_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/secrets.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"

namespace tally {
namespace {

std::string join_path(const std::string& folder, const std::string& name) {
  if (folder.empty() || (!name.empty() && name.front() == '/')) return name;
  if (name.empty()) return folder;
  return folder.back() == '/' ? folder + name : folder + "/" + name;
}

std::string base_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

std::vector<std::string> split_names(const std::string& text, const std::string& separator) {
  std::vector<std::string> names;
  for (std::string& name : split_strip(text, separator)) {
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

// A Python literal for exactly these bytes as text. Everything but plain letters is escaped.
std::string python_literal(std::string_view text) {
  std::string literal = "'";
  for (const char c : text) {
    switch (c) {
      case '\\':
        literal += "\\\\";
        break;
      case '\'':
        literal += "\\'";
        break;
      case '\n':
        literal += "\\n";
        break;
      case '\r':
        literal += "\\r";
        break;
      case '\0':
        literal += "\\x00";
        break;
      default:
        literal += c;
    }
  }
  return literal + "'";
}

// Replaces each line that consists of `from` only, apart from blanks at its ends.
void replace_lines(std::string& text, std::string_view from, const std::string& to) {
  std::string result;
  from = strip(from);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line(text.data() + at, end - at);
    at = end;
    if (strip(line) != from) {
      result.append(line);
    } else if (!to.empty()) {
      result.append(to).push_back('\n');
    }
  }
  text = std::move(result);
}

Status apply_substitution(const Substitution& sub, const Lookup& lookup, Evaluator& evaluator,
                          std::string* text) {
  const std::string source = substitute(sub.source.value, lookup);
  const std::string dest = substitute(sub.dest.value, lookup);
  if (!source.empty() && source.front() == '\n') {  // whole lines, see check/sets.cc
    replace_lines(*text, source, dest);
    return Status::ok();
  }
  if (!sub.regex) {
    replace_all(*text, source, dest);
    return Status::ok();
  }
  // Python's own re gives the exact syntax of patterns and replacements. The trailing mark keeps
  // the text's last newlines, because the output may be stripped.
  const Evaluation result = evaluator.evaluate_one(
      Mode::python, "__import__('re').sub(" + python_literal(source) + ", " + python_literal(dest) +
                        ", " + python_literal(*text) + ") + '|'");
  if (!result.ok || result.value.empty() || result.value.back() != '|') {
    return Status::error("substitution \"" + source + "\": " +
                         (result.error.empty() ? "not a regular expression" : result.error));
  }
  *text = result.value.substr(0, result.value.size() - 1);
  return Status::ok();
}

// The source from which a file set would copy `path` of a work directory.
std::optional<std::string> planned_source(const std::vector<PlannedFile>& files,
                                          const std::string& path) {
  const std::string wanted = normal_path("/" + path);
  for (const PlannedFile& file : files) {
    const std::string target = normal_path("/" + file.target);
    if (wanted == target) return file.source;
    if (starts_with(wanted, target + "/")) return file.source + wanted.substr(target.size());
  }
  return std::nullopt;
}

// Leaves `file` empty when there is no such file. A file that cannot be read may be there: an
// error.
Status read_absolute(const std::string& path, const std::string& shown,
                     std::optional<FileBytes>* file) {
  struct stat info {};
  file->reset();
  if (stat(path.c_str(), &info) != 0) {
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    return absent ? Status::ok() : file_error(path, "cannot read", errno);
  }
  if (!S_ISREG(info.st_mode)) return Status::ok();
  FileBytes found{shown, {}, static_cast<int>(info.st_mode & 07777)};
  TRY(read_file(path, &found.bytes));
  *file = std::move(found);
  return Status::ok();
}

}  // namespace

Status list_files(const FileCopy& entry, const Lookup& lookup, const std::string& work_dir,
                  std::vector<PlannedFile>* files, const Variables& variables) {
  const auto expanded = [&](const std::string& path) {
    return variables ? expand_path(path, variables) : expand_path(path);
  };
  const std::string text = substitute(entry.source.value, lookup);
  std::vector<std::string> patterns = split_names(text, entry.separator);
  for (std::string& pattern : patterns) pattern = expanded(pattern);
  const std::string source_dir = expanded(substitute(entry.source_dir, lookup));
  const std::string target_dir = expanded(substitute(entry.target_dir, lookup));
  std::vector<std::string> names;
  if (!entry.target.value.empty()) {
    const std::string given = substitute(entry.target.value, lookup);
    names = split_names(given, entry.separator);
    // JUBE splits names at commas, even when another separator splits the sources.
    if (names.size() != patterns.size()) names = split_names(given, ",");
    for (std::string& name : names) name = expanded(name);
    if (names.size() != patterns.size()) {
      return Status::error("file set: " + std::to_string(names.size()) + " names for " +
                           std::to_string(patterns.size()) + " files (\"" + text + "\")");
    }
  }
  const std::string base =
      entry.internal ? work_dir : absolute_path(entry.file_path_ref, entry.file_path);
  for (size_t i = 0; i < patterns.size(); ++i) {
    const std::string given = join_path(source_dir, patterns[i]);
    const bool absolute = !given.empty() && given.front() == '/';
    // Only what the user wrote is a pattern: a folder may be called "a[1]".
    // `..` removes also a folder that does not exist, as in JUBE.
    std::string pattern = join_path(escaped_for_matching(base), given);
    if (given.find("..") != std::string::npos) pattern = normal_path(pattern);
    std::vector<std::string> found;
    TRY(matching_paths(pattern, &found));
    if (found.empty()) {
      return Status::error("no files found using \"" + given + "\"");
    }
    for (const std::string& path : found) {
      // "src/." is called src, as in JUBE, and "." is the work directory itself, which is there.
      const bool below = !absolute && starts_with(path, base + "/");
      const std::string own = std::filesystem::path(below ? path.substr(base.size() + 1) : path)
                                  .lexically_normal()
                                  .string();
      const std::string name = names.empty() ? base_name(own) : names[i];
      files->push_back({absolute_path(path), join_path(target_dir, name), entry.link, absolute});
    }
  }
  return Status::ok();
}

std::string path_behind_all_links(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMost = 40;  // as the kernel
  std::error_code error, not_there;
  fs::path real = fs::weakly_canonical(path, error);
  for (int i = 0; !error && i < kMost && fs::is_symlink(real, not_there); ++i) {
    const fs::path target = fs::read_symlink(real, error);
    if (!error) real = fs::weakly_canonical(real.parent_path() / target, error);
  }
  return error ? normal_path(path) : real.string();
}

std::string place_of_substituted(const std::string& path, const std::string& work_dir) {
  const std::string whole = opened_path(path, work_dir);
  std::error_code error;
  if (!std::filesystem::is_symlink(whole, error)) return whole;
  std::string real = path_behind_all_links(whole);
  return starts_with(real, path_behind_all_links(work_dir) + "/") ? real : whole;
}

FileReader read_from(const std::string& work_dir) {
  return [work_dir](const std::string& path, std::optional<FileBytes>* file) {
    return read_absolute(join_path(work_dir, path), path, file);
  };
}

std::vector<const SubstituteSet*> substitute_sets(const Benchmark& benchmark,
                                                  const std::vector<std::string>& names) {
  std::vector<const SubstituteSet*> sets;
  for (const std::string& name : names) {
    const auto found = benchmark.substitute_sets.find(name);
    if (found != benchmark.substitute_sets.end()) sets.push_back(&found->second);
  }
  return sets;
}

Status substitute_files(const std::vector<const SubstituteSet*>& sets, const Lookup& lookup,
                        Evaluator& evaluator, const FileReader& reader,
                        std::vector<FileBytes>* files) {
  // "job", "./job", its whole path and the way through a link are one file.
  const std::string* folder = lookup("jube_wp_abspath");
  const std::string work_dir = folder != nullptr ? *folder : "/";
  const auto real = [&](const std::string& path) {
    return path_behind_all_links(join_path(work_dir, path));
  };
  const auto made = [&](const std::string& path) -> FileBytes* {
    const std::string wanted = files->empty() ? std::string() : real(path);
    for (FileBytes& file : *files) {
      if (file.path == path || real(file.path) == wanted) return &file;
    }
    return nullptr;
  };
  for (const SubstituteSet* set : sets) {
    const std::string& name = set->name.value;
    for (const IoFile& io : set->files) {
      const std::string in = expand_path(substitute(io.in.value, lookup));
      const std::string out = expand_path(substitute(io.out.value, lookup));
      std::optional<FileBytes> input;
      if (const FileBytes* earlier = made(in)) {
        input = *earlier;
      } else
        TRY(reader(in, &input));
      if (!input) {
        return Status::error("substitution set \"" + name + "\": file \"" + in + "\" not found");
      }
      for (const Substitution& sub : set->substitutions) {
        if (Status s = apply_substitution(sub, lookup, evaluator, &input->bytes); !s) {
          return Status::error("substitution set \"" + name + "\": " + s.message(), s.reason(),
                               s.path());
        }
      }
      FileBytes* target = made(out);
      if (target == nullptr) {
        FileBytes fresh{out, {}, input->mode};
        std::optional<FileBytes> there;
        if (io.append) {
          TRY(reader(out, &there));
        }
        if (there) fresh.bytes = std::move(there->bytes);
        files->push_back(std::move(fresh));
        target = &files->back();
      } else if (!io.append) {
        target->bytes.clear();
      }
      target->bytes += input->bytes;
      target->mode = input->mode;
    }
  }
  return Status::ok();
}

void keep_secrets(const std::vector<std::string>& secrets, std::vector<FileBytes>* files) {
  for (FileBytes& file : *files) {
    if (shows_secret(file.bytes, secrets)) file.mode &= 0700;
  }
}

Status plan_substituted_files(const Benchmark& benchmark, const std::vector<std::string>& sets,
                              const Lookup& lookup, Evaluator& evaluator,
                              std::vector<FileBytes>* files) {
  std::vector<PlannedFile> planned;
  for (const std::string& name : sets) {
    const auto set = benchmark.file_sets.find(name);
    if (set == benchmark.file_sets.end()) continue;
    for (const auto& entry : set->second.entries) {
      const auto* copy = std::get_if<FileCopy>(&entry);
      if (copy == nullptr || copy->internal) continue;
      bool active = true;
      TRY(evaluate_active(substitute(copy->active.value, lookup), evaluator, &active));
      if (!active) continue;
      TRY(list_files(*copy, lookup, "", &planned));
    }
  }
  const FileReader reader = [&](const std::string& path, std::optional<FileBytes>* file) {
    file->reset();
    if (const auto source = planned_source(planned, path))
      return read_absolute(*source, path, file);
    const bool absolute = !path.empty() && path.front() == '/';
    return absolute ? read_absolute(path, path, file) : Status::ok();
  };
  Status status =
      substitute_files(substitute_sets(benchmark, sets), lookup, evaluator, reader, files);
  if (status) return status;
  return Status::error(status.message() +
                       " in the step's file sets (a file that the run itself makes cannot be shown "
                       "before it)");
}

}  // namespace tally
