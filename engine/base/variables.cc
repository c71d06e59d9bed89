#include "engine/base/variables.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "engine/base/accounts.h"
#include "engine/base/text.h"

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

namespace {

// The variable that text[at], a dollar, begins. An empty name: none.
struct Variable {
  std::string_view name;
  size_t end = 0;  // after the name, and after its brace
};

Variable variable_at(std::string_view text, size_t at) {
  const bool braces = at + 1 < text.size() && text[at + 1] == '{';
  const size_t begin = at + (braces ? 2 : 1);
  size_t end = begin;
  if (end < text.size() && is_name_start(text[end])) {
    while (end < text.size() && is_name_char(text[end])) ++end;
  }
  if (end == begin || (braces && (end == text.size() || text[end] != '}'))) return {};
  return {text.substr(begin, end - begin), end + (braces ? 1 : 0)};
}

// Calls `variable(name)` and `character(c)` for the parts of the text, in order.
template <typename OfVariable, typename OfCharacter>
void read_parts(std::string_view text, const OfVariable& variable, const OfCharacter& character) {
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      character(text[at++]);
      continue;
    }
    if (const Variable found = variable_at(text, at); !found.name.empty()) {
      variable(found.name);
      at = found.end;
      continue;
    }
    character('$');
    at += at + 1 < text.size() && text[at + 1] == '$' ? 2 : 1;
  }
}

// Names to which a shell, or what job scripts source, gives values that are not in the environment.
bool is_set_by_shell(std::string_view name) {
  constexpr std::array<std::string_view, 31> kNames = {
      "COLUMNS", "DIRSTACK",   "EPOCHREALTIME", "EPOCHSECONDS", "EUID",   "FUNCNAME",
      "GROUPS",  "HISTCMD",    "HOSTNAME",      "HOSTTYPE",     "IFS",    "LINENO",
      "LINES",   "MACHTYPE",   "OPTARG",        "OPTERR",       "OPTIND", "OSTYPE",
      "PPID",    "PIPESTATUS", "PS1",           "PS2",          "PS4",    "RANDOM",
      "SECONDS", "SHELL",      "SHELLOPTS",     "SRANDOM",      "TERM",   "UID",
      "_"};
  constexpr std::array<std::string_view, 7> kOfScript = {
      "nodes", "taskspernode", "tasks", "status", "stdout", "stderr", "time_is_up"};
  return contains(kNames, name) || contains(kOfScript, name) || starts_with(name, "BASH") ||
         starts_with(name, "job_");
}

}  // namespace

std::string expand_variables(std::string_view text, const Variables& variables) {
  std::string out;
  read_parts(
      text, [&](std::string_view name) { out += variables(std::string(name)).value_or(""); },
      [&](char c) { out += c; });
  return out;
}

std::string variables_for_shell(std::string_view text) {
  std::string word = "\"";
  read_parts(
      text,
      [&](std::string_view name) {
        if (is_set_by_shell(name)) {
          word += "$(printenv ";
          word += name;
          word += ')';
        } else {
          word += "${";
          word += name;
          word += "-}";
        }
      },
      [&](char c) {
        // JUBE's substitution doubles a dollar before white space. The quotes keep them apart.
        if (word.back() == '$' && (c == ' ' || (c >= '\t' && c <= '\r'))) word += "\"\"";
        if (c == '"' || c == '\\' || c == '`' || c == '$') word += '\\';
        word += c;
      });
  return word + "\"";
}

std::set<std::string> variables_in(std::string_view text) {
  std::set<std::string> names;
  read_parts(
      text, [&](std::string_view name) { names.emplace(name); }, [](char) {});
  return names;
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && is_name_start(name.front()) && std::ranges::all_of(name, is_name_char);
}

std::string pack_variables(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::string packed;
  for (const auto& [name, text] : variables) {
    if (!packed.empty()) packed += '\n';
    for (const char c : name + "=" + text) {
      const char* escaped = c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '$' ? "\\d" : nullptr;
      if (escaped != nullptr) {
        packed += escaped;
      } else {
        packed += c;
      }
    }
  }
  return packed;
}

std::vector<std::pair<std::string, std::string>> unpack_variables(std::string_view packed) {
  std::vector<std::pair<std::string, std::string>> variables;
  while (!packed.empty()) {
    const std::string_view line = packed.substr(0, packed.find('\n'));
    packed.remove_prefix(std::min(packed.size(), line.size() + 1));
    std::string entry;
    for (size_t i = 0; i < line.size(); ++i) {
      if (line[i] != '\\' || i + 1 == line.size()) {
        entry += line[i];
      } else {
        const char c = line[++i];
        entry += c == 'n' ? '\n' : c == 'd' ? '$' : c;
      }
    }
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    variables.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

}  // namespace tally
