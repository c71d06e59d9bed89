#include "engine/base/presence.h"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "engine/base/files.h"

namespace tally {

bool means_not_there(int reason) {
  return reason == ENOENT || reason == ENOTDIR || reason == ELOOP || reason == ENAMETOOLONG;
}

Status look_error(const std::string& path, int reason) {
  const char* then = may_pass(reason) ? "; try again when its file system answers" : "";
  return Status::error(path + ": cannot look at it: " + strerror(reason) + then, reason, path);
}

Status look_at(const std::string& path, std::optional<struct stat>* found, Links links) {
  struct stat info {};
  const int code = links == Links::follow ? stat(path.c_str(), &info) : lstat(path.c_str(), &info);
  found->reset();
  if (code == 0) *found = info;
  return code == 0 || means_not_there(errno) ? Status::ok() : look_error(path, errno);
}

Status path_exists(const std::string& path, bool* there) {
  std::optional<struct stat> found;
  Status looked = look_at(path, &found);
  *there = found.has_value();
  return looked;
}

bool may_be_there(const std::string& path) {
  bool there = false;
  return !path_exists(path, &there) || there;
}

Status folder_exists(const std::string& path, bool* there) {
  std::optional<struct stat> found;
  Status looked = look_at(path, &found);
  *there = found && S_ISDIR(found->st_mode);
  return looked;
}

Status each_entry(const std::string& folder, const std::function<void(const dirent&)>& take) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
  if (entries == nullptr) return means_not_there(errno) ? Status::ok() : look_error(folder, errno);
  for (;;) {
    errno = 0;  // the end of the entries and an error look alike
    const dirent* entry = readdir(entries.get());
    if (entry == nullptr) break;
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) take(*entry);
  }
  return errno == 0 || means_not_there(errno) ? Status::ok() : look_error(folder, errno);
}

Status names_in(const std::string& folder, std::vector<std::string>* names) {
  names->clear();
  Status looked =
      each_entry(folder, [&](const dirent& entry) { names->emplace_back(entry.d_name); });
  std::ranges::sort(*names);
  return looked;
}

namespace {

// Whether a name of the pattern has characters that stand for others.
bool is_pattern(std::string_view name) {
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '\\') {
      ++i;
    } else if (name[i] == '*' || name[i] == '?' ||
               (name[i] == '[' && name.find(']', i) != std::string_view::npos)) {
      return true;
    }
  }
  return false;
}

std::string without_escapes(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

// The C library's glob() takes an error of readdir() or stat() for the end of the names.
// `begin`: what is found so far, with its slash.
Status expand(std::string begin, std::string_view rest, std::vector<std::string>* paths) {
  size_t end = 0;
  std::string_view name;
  for (;;) {
    end = std::min(rest.find('/'), rest.size());
    name = rest.substr(0, end);
    if (is_pattern(name)) break;
    const size_t next = std::min(end + 1, rest.size());
    begin += without_escapes(rest.substr(0, next));
    rest.remove_prefix(next);
    if (!rest.empty()) continue;
    std::optional<struct stat> found;
    Status looked = look_at(begin, &found, Links::keep);
    if (found) paths->push_back(begin);
    return looked;
  }
  const bool last = end == rest.size();
  std::vector<std::string> names;
  Status looked = each_entry(begin.empty() ? "." : begin, [&](const dirent& entry) {
    const bool no_folder =
        entry.d_type != DT_UNKNOWN && entry.d_type != DT_DIR && entry.d_type != DT_LNK;
    if (!last && no_folder) return;
    if (fnmatch(std::string(name).c_str(), entry.d_name, FNM_PERIOD) == 0)
      names.emplace_back(entry.d_name);
  });
  for (size_t i = 0; looked && i < names.size(); ++i) {
    if (last) {
      paths->push_back(begin + names[i]);
    } else {
      looked = expand(begin + names[i] + "/", rest.substr(end + 1), paths);
    }
  }
  return looked;
}

}  // namespace

Status matching_paths(const std::string& pattern, std::vector<std::string>* paths) {
  const auto before = static_cast<std::ptrdiff_t>(paths->size());
  Status looked = expand({}, pattern, paths);
  if (!looked) paths->resize(static_cast<size_t>(before));
  std::sort(paths->begin() + before, paths->end());
  return looked;
}

std::string escaped_for_matching(const std::string& path) {
  std::string pattern;
  for (const char c : path) {
    if (c == '\\' || c == '*' || c == '?' || c == '[') pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace tally
