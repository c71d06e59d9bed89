#include "engine/read/short_form.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/shell_words.h"
#include "engine/base/text.h"
#include "engine/read/schema.h"
#include "engine/read/yaml_tree.h"

namespace tally {

std::span<const ShortKey> short_keys() {
  static constexpr ShortKey keys[] = {
      {"parameters", "names with values",
       "`NAME: VALUE`, `NAME: [VALUES]` for several points, or `NAME: {...}` with the keys of a "
       "`parameter`. A list of such mappings is chosen from by `tag`."},
      {"where", "expression", "As in a `parameterset`."},
      {"zip", "list of names", "As in a `parameterset`."},
      {"build", "command, list of commands, or keys of a `step`",
       "A step of `kind: build`, called `build`: done once for the values of the parameters that "
       "it "
       "names, and again only when something changed."},
      {"run", "command, or keys of a `step`",
       "A step of `kind: run`, called `run`, with this `launch`. What `build` made lies in the "
       "folder `build`."},
      {"on", "name or file", "The run's `platform`, as `slurm`."},
      {"files", "list of names",
       "Files and folders beside the workflow that the run finds in its folder, as links, and the "
       "build as copies. What a command names as a word is there without it, as a copy."},
      {"metrics", "names with patterns",
       "`NAME: PATTERN`, or `NAME: {_: PATTERN, ...}` with the keys of a `pattern` and of its "
       "`column`, and `file` where it is not stdout. A metric is a float unless its `type` says "
       "otherwise; with `repeat` its median and interval are shown."},
      {"rows", "name or list of names",
       "Metrics: each match of the first makes a row of the table, as in an `analyser`."},
      {"chart", "keys of a `chart`", "As in a `result`."},
  };
  return keys;
}

// Keys of steps that Tally adds to JUBE's, except those that the short form has words of its own for.
bool is_run_key(std::string_view key) {
  for (const char* own : {"kind", "launch", "components", "platform", "input", "reuse"})
    if (key == own) return false;
  if (const ElementRule* element = find_child("step", key))
    return element->language == Language::tally;
  const KeyRule* rule = find_key("step", key);
  return rule != nullptr && rule->language == Language::tally;
}

// Other tools have other words for these keys.
std::string_view key_meant_by(std::string_view word) {
  static constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"command", "run"},         {"cmd", "run"},           {"exec", "run"},
      {"executable", "run"},      {"script", "run"},        {"program", "run"},
      {"launch", "run"},          {"environment", "env"},   {"variables", "env"},
      {"platform", "on"},         {"machine", "on"},        {"scheduler", "on"},
      {"system", "on"},           {"compile", "build"},     {"repetitions", "repeat"},
      {"num_repeats", "repeat"},  {"filter", "where"},      {"exclude", "where"},
      {"variants", "parameters"}, {"matrix", "parameters"}, {"patterns", "metrics"},
      {"results", "metrics"},     {"measure", "metrics"},   {"inputs", "files"},
      {"plot", "chart"},          {"job", "resources"},     {"slurm", "resources"},
      {"sbatch", "resources"},    {"nodes", "resources"}};
  for (const auto& [other, key] : words)
    if (word == other) return key;
  return {};
}

namespace {

bool uses_own_keys(std::string_view element, const YamlNode& node) {
  for (const YamlPtr& item : node.items)
    if (uses_own_keys(element, *item)) return true;
  for (const auto& [key, value] : node.entries) {
    if (const ElementRule* child = find_child(element, element_name(key->value))) {
      if (child->language == Language::tally || uses_own_keys(child->id, *value)) return true;
    } else if (const KeyRule* rule = find_key(element, key->value)) {
      if (rule->language == Language::tally) return true;
    }
  }
  return false;
}

// Whether the file has parameters or metrics of the short form and nothing else that JUBE would read:
// its `run` is missing.
bool lacks_run(const YamlNode& top) {
  for (const auto& [key, value] : top.entries) {
    const ElementRule* element = find_child("benchmark", element_name(key->value));
    if (element == nullptr) element = find_child("jube", element_name(key->value));
    if (element != nullptr && std::string_view(element->name) != "comment") return false;
  }
  return find_written(top, "name") != nullptr && find_written(top, "parameters") != nullptr &&
         find_written(top, "metrics") != nullptr;
}

}  // namespace

bool is_short_form(const YamlNode& top) {
  if (top.kind != YamlNode::Kind::mapping || find_written(top, "benchmark") != nullptr)
    return false;
  const bool run = find_written(top, "run") != nullptr;
  if (run && find_written(top, "step") == nullptr) return true;
  if (lacks_run(top)) return true;
  const auto keys = short_keys();
  const bool any = std::ranges::any_of(
      keys, [&](const ShortKey& key) { return find_written(top, key.key) != nullptr; });
  return any && uses_own_keys("benchmark", top);
}

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
    const bool named = std::ranges::any_of(
        first, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
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
  const bool here = starts_with(program, "./"), path = program.find('/') != std::string::npos;
  const bool of_build = starts_with(program, "build/") && !build_names.empty();
  if (program.empty() || program.front() == '/' || starts_with(program, "../") || of_build) return;
  const std::string name = here ? program.substr(2) : program;
  const std::string last = name.substr(name.rfind('/') + 1);
  const bool beside = may_be_there(directory + "/" + name), made = build_names.count(last) != 0;
  const std::string in_build =
      fmt::format("what the build makes lies in its folder: build/{}", last);
  if (here && beside && made) {
    diagnostics.warning(
        command.mark,
        fmt::format("'{}' is the file beside the workflow, not the one of the build", program),
        in_build);
  } else if (path && !beside) {
    diagnostics.warning(command.mark,
                        fmt::format("there is no file '{}' beside the workflow", program),
                        made ? in_build : did_you_mean(program, programs_in(directory)));
  } else if (!path && beside && find_program({name}, {}).empty()) {
    diagnostics.warning(command.mark, fmt::format("no folder of PATH has a program '{}'", name),
                        fmt::format("the file beside the workflow is ./{}", name));
  }
}

void warn_of_paths_above(const YamlNode& command, const std::string& directory,
                         Diagnostics& diagnostics) {
  const std::vector<ShellWord> words = shell_words(command.value);
  const auto changes_folder = [](const ShellWord& word) { return word.text == "cd"; };
  if (std::ranges::any_of(words, changes_folder)) return;
  for (const ShellWord& word : words) {
    if (word.written || !starts_with(word.text, "../") ||
        word.text.find_first_of("$`*?[{") != std::string::npos ||
        !may_be_there(directory + "/" + word.text))
      continue;
    diagnostics.warning(
        command.mark,
        fmt::format("'{}' is looked for from the folder of the workpackage, where the command runs",
                    word.text),
        fmt::format("from the folder of the workflow it is $jube_benchmark_home/{}", word.text));
  }
}

namespace {

// A computed column has no pattern, so that its unit stands in the title.
void move_unit(const YamlNode& pattern, YamlNode* column) {
  const YamlNode* unit = pattern.find("unit");
  if (unit == nullptr || column->find("title") != nullptr) return;
  const std::string& name = column->find("_")->value;
  add_text(column, "title", fmt::format("{}[{}]", name, written_text(*unit)), unit->mark);
}

}  // namespace

Metric metric_of(const YamlNode& key, const YamlNode& definition, bool repeated) {
  Metric metric;
  metric.file = "stdout";
  metric.column = make_mapping(key.mark);
  add_text(metric.column.get(), "_", written_text(key), key.mark);
  YamlPtr pattern = make_mapping(key.mark);
  bool has_value = false, has_type = false;
  for (const auto& entry : definition.entries) {
    const std::string& name = entry.first->value;
    const bool of_column = find_key("column", name) != nullptr || find_child("column", name);
    if (name == "file" && is_text(*entry.second)) {
      metric.file = written_text(*entry.second);
      metric.file_mark = entry.second->mark;
    } else if (name != "_" && of_column && find_key("pattern", name) == nullptr) {
      metric.column->entries.push_back(entry);
    } else {
      pattern->entries.push_back(entry);
      has_value = has_value || name == "_";
      has_type = has_type || name == "type";
    }
  }
  if (!has_value && metric.column->find("expression") != nullptr) {
    move_unit(*pattern, metric.column.get());
    pattern = nullptr;
  }
  if (pattern != nullptr && !has_type)
    pattern->entries.insert(pattern->entries.begin() + 1,
                            {make_scalar("type", key.mark), make_scalar("float", key.mark)});
  const YamlNode* type = pattern != nullptr ? pattern->find("type") : nullptr;
  const bool number = type == nullptr || type->value == "float" || type->value == "int";
  const bool said = metric.column->find("statistic") || metric.column->find("uncertainty") ||
                    metric.column->find("relative_to");
  if (repeated && number && !said) add_text(metric.column.get(), "uncertainty", "ci", key.mark);
  metric.pattern = std::move(pattern);
  return metric;
}

}  // namespace tally
