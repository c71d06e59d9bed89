#include "engine/read/short_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/shell_words.h"
#include "engine/base/text.h"

namespace tally {
namespace {

std::string without_parameters(const std::string& path) {
  std::string pattern;
  for (size_t at = 0; at < path.size();) {
    if (path[at] != '$') {
      pattern += path[at++];
      continue;
    }
    const bool braces = at + 1 < path.size() && path[at + 1] == '{';
    at += braces ? 2 : 1;
    while (at < path.size() &&
           (std::isalnum(static_cast<unsigned char>(path[at])) != 0 || path[at] == '_'))
      ++at;
    if (braces && at < path.size() && path[at] == '}') ++at;
    pattern += '*';
  }
  return pattern;
}

// Adds the name in the workflow's folder under which a word's file lies. A parameter in the name
// stands for any text. Names that a file set reads otherwise are left to `files`.
void add_beside(const ShellWord& word, const std::string& text, const std::string& directory,
                std::set<std::string>* names) {
  std::string path = text;
  while (starts_with(path, "./")) path.erase(0, 2);
  const std::string first = path.substr(0, path.find('/'));
  const auto has = [&](const char* characters) {
    return first.find_first_of(characters) != std::string::npos;
  };
  const bool elsewhere = first.empty() || first == "." || first == ".." || has("$`{,") ||
                         std::string_view("~-+").find(path[0]) != std::string_view::npos;
  if (elsewhere || path.find("..") != std::string::npos) return;
  if (has("*?[")) {  // a glob of the shell's, and not of all that lies there
    const bool named = std::any_of(first.begin(), first.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0;
    });
    if (word.quoted || !named) return;
  }
  std::vector<std::string> found;
  const std::string pattern = escaped_for_matching(directory) + "/" + without_parameters(path);
  if (matching_paths(pattern, &found) && !found.empty()) names->insert(first);
}

std::vector<std::string> programs_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (::access(entry->path().c_str(), X_OK) == 0)
      names.push_back("./" + entry->path().filename().string());
  }
  return names;
}

}  // namespace

void add_names_beside(const std::string& command, const std::string& directory,
                      std::set<std::string>* names) {
  for (const ShellWord& word : shell_words(command)) {
    if (word.written) continue;
    const size_t equals = word.text.find('=');
    add_beside(word, word.text, directory, names);
    if (equals != std::string::npos)
      add_beside(word, word.text.substr(equals + 1), directory, names);
  }
}

void warn_of_program(const YamlNode& command, const std::set<std::string>& build_names,
                     const std::string& directory, Diagnostics& diagnostics) {
  const std::vector<ShellWord> words = shell_words(command.value);
  if (words.empty() || words.front().text.find_first_of("$`*?[{~=") != std::string::npos) return;
  const std::string& program = words.front().text;
  const bool here = starts_with(program, "./");
  if (!here && program.find('/') != std::string::npos) return;
  const std::string name = here ? program.substr(2) : program;
  const bool beside = may_be_there(directory + "/" + name);
  if (here && build_names.count(name) != 0) {
    diagnostics.warning(
        command.mark,
        fmt::format("'{}' is the file beside the workflow, not the one of the build", program),
        fmt::format("what the build makes lies in its folder: build/{}", name));
  } else if (here && !beside) {
    diagnostics.warning(command.mark,
                        fmt::format("there is no file '{}' beside the workflow", program),
                        did_you_mean(program, programs_in(directory)));
  } else if (!here && beside && find_program({name}, {}).empty()) {
    diagnostics.warning(command.mark, fmt::format("no folder of PATH has a program '{}'", name),
                        fmt::format("the file beside the workflow is ./{}", name));
  }
}

}  // namespace tally
