#include "engine/workpackage/matching_files.h"

#include <algorithm>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"

namespace tally {
// The names in a list that is divided by commas.
std::vector<std::string> names_of(const std::string& list) {
  std::vector<std::string> names;
  for (const std::string& given : split_strip(list, ",")) {
    std::string name = expand_path(given);
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

bool is_glob(const std::string& name) {
  return name.find_first_of("*?[") != std::string::npos;
}

std::string pattern_in(const std::string& work_dir, const std::string& name) {
  // The folder is taken literally. In the name a backslash is a character as any other, as in
  // Python.
  const bool absolute = !name.empty() && name.front() == '/';
  std::string pattern = absolute ? "" : escaped_for_matching(work_dir) + "/";
  for (const char c : name) pattern += c == '\\' ? "\\\\" : std::string(1, c);
  return pattern;
}

std::string folder_of_pattern(const std::string& work_dir, const std::string& name) {
  const size_t slash = name.rfind('/', name.find_first_of("*?["));
  return opened_path(slash == std::string::npos ? "" : name.substr(0, slash + 1), work_dir);
}

std::string opened_pattern(const std::string& work_dir, const std::string& name) {
  const size_t slash = name.rfind('/', name.find_first_of("*?["));
  const std::string rest = slash == std::string::npos ? name : name.substr(slash + 1);
  return absolute_path(pattern_in(folder_of_pattern(work_dir, name), rest));
}

Status matching_files(const std::string& work_dir, const std::string& name,
                      const std::string& own_dir, std::vector<std::string>* files) {
  if (!own_dir.empty()) {
    if (Status s = matching_files(own_dir, name, {}, files); !s || !files->empty()) return s;
  }
  if (!is_glob(name)) {
    const bool absolute = !name.empty() && name.front() == '/';
    const std::string path = absolute ? name : work_dir + "/" + name;
    bool there = false;
    Status looked = path_exists(path, &there);
    if (there) *files = {path};
    return looked;
  }
  TRY(matching_paths(pattern_in(work_dir, name), files));
  std::ranges::sort(*files, natural_less);
  return Status::ok();
}

Status files_beside_log(const std::string& log, const std::string& name,
                        const std::string& first_name, size_t which,
                        std::vector<std::string>* files) {
  if (which == 0) {
    *files = {log};
    return Status::ok();
  }
  const size_t slash = log.rfind('/') + 1;
  if (log.substr(slash) != first_name.substr(first_name.rfind('/') + 1)) return Status::ok();
  return matching_files(slash == 0 ? "." : log.substr(0, slash), name, {}, files);
}

bool natural_less(std::string_view a, std::string_view b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      size_t from_i = i;
      size_t from_j = j;
      while (i < a.size() && is_digit(a[i])) ++i;
      while (j < b.size() && is_digit(b[j])) ++j;
      std::string_view left = a.substr(from_i, i - from_i);
      std::string_view right = b.substr(from_j, j - from_j);
      left.remove_prefix(std::min(left.find_first_not_of('0'), left.size()));
      right.remove_prefix(std::min(right.find_first_not_of('0'), right.size()));
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;
}

}  // namespace tally
