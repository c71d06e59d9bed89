#include "engine/base/path_text.h"

#include <algorithm>
#include <cstdlib>

#include "engine/base/accounts.h"
#include "engine/base/ascii.h"

namespace tally {
namespace {

// Reads the variable at path[at] == '$' into *name and the position after it into *after. Returns
// false if there is no variable.
bool path_variable_at(const std::string& path, size_t at, std::string* name, size_t* after) {
  if (at + 1 >= path.size()) return false;
  if (path[at + 1] == '{') {
    const size_t end = path.find('}', at);
    if (end == std::string::npos) return false;
    *name = path.substr(at + 2, end - at - 2);
    *after = end + 1;
    return true;
  }
  size_t end = at + 1;
  while (end < path.size() && is_name_char(path[end])) ++end;
  *name = path.substr(at + 1, end - at - 1);
  *after = end;
  return !name->empty();
}

std::string home_of(const std::string& user) {
  if (user.empty()) {
    if (const char* home = std::getenv("HOME")) return home;
  }
  return home_folder(user);
}

std::string expand_home(const std::string& path) {
  if (path.empty() || path.front() != '~') return path;
  const size_t end = std::min(path.find('/'), path.size());
  std::string home = home_of(path.substr(1, end - 1));
  if (home.empty()) return path;
  while (!home.empty() && home.back() == '/') home.pop_back();
  const std::string full = home + path.substr(end);
  return full.empty() ? "/" : full;
}

}  // namespace

std::string expand_path(const std::string& path) {
  return expand_path(path, [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  });
}

std::string expand_path(const std::string& path, const Variables& variables) {
  const std::string text = expand_home(path);
  std::string result, name;
  for (size_t at = 0, after = 0; at < text.size(); at = after) {
    std::optional<std::string> value;
    const bool variable = text[at] == '$' && path_variable_at(text, at, &name, &after);
    if (variable) value = variables(name);
    if (!variable) after = at + 1;
    result += value ? *value : text.substr(at, after - at);
  }
  return result;
}

std::string unknown_variable(const std::string& path) {
  std::string name;
  size_t after = 0;
  for (size_t at = path.find('$'); at != std::string::npos; at = path.find('$', at + 1)) {
    if (path_variable_at(path, at, &name, &after)) return path.substr(at, after - at);
  }
  return {};
}

}  // namespace tally
