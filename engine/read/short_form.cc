#include "engine/read/short_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/path_text.h"
#include "engine/base/presence.h"
#include "engine/base/shell_words.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/read/files.h"
#include "engine/read/schema.h"

namespace tally {
namespace {

using Kind = YamlNode::Kind;
using Entry = std::pair<YamlPtr, YamlPtr>;

// The text of a key as it is written: PyYAML makes True of `on`.
const std::string& name_of(const YamlNode& key) {
  return key.written.empty() ? key.value : key.written;
}

bool is_short_key(std::string_view key) {
  const auto keys = short_keys();
  return std::any_of(keys.begin(), keys.end(), [&](const ShortKey& k) { return key == k.key; });
}

const YamlNode* find_written(const YamlNode& mapping, std::string_view key) {
  for (const auto& [name, value] : mapping.entries)
    if (name_of(*name) == key) return value.get();
  return nullptr;
}

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

YamlPtr scalar(std::string text, const Mark& mark) {
  auto node = std::make_shared<YamlNode>();
  node->kind = Kind::scalar;
  node->mark = mark;
  node->value = std::move(text);
  return node;
}

YamlPtr empty_mapping(const Mark& mark) {
  auto node = std::make_shared<YamlNode>();
  node->kind = Kind::mapping;
  node->mark = mark;
  return node;
}

// Adds `key: value`. The key has the mark of what it was made from.
void add(YamlNode* mapping, const char* key, YamlPtr value) {
  YamlPtr name = scalar(key, value->mark);
  mapping->entries.emplace_back(std::move(name), std::move(value));
}
void add_text(YamlNode* mapping, const char* key, const std::string& text, const Mark& mark) {
  add(mapping, key, scalar(text, mark));
}

bool is_text(const YamlNode& node) {
  return node.kind == Kind::scalar || node.kind == Kind::null;
}

bool is_list_of(const YamlNode& node, Kind kind) {
  return node.kind == Kind::sequence && !node.items.empty() &&
         std::all_of(node.items.begin(), node.items.end(),
                     [&](const YamlPtr& item) { return item->kind == kind; });
}

// Calls `take` for each text in the node, keys left out.
template <typename Take>
void each_text(const YamlNode& node, const Take& take) {
  if (node.kind == Kind::scalar) take(name_of(node));
  for (const YamlPtr& item : node.items) each_text(*item, take);
  for (const auto& [key, value] : node.entries) each_text(*value, take);
}

// Whether all values are whole numbers that are written as such: `type: int` changes none of them.
bool all_whole(const YamlNode& value) {
  if (value.kind == Kind::sequence)
    return !value.items.empty() && std::all_of(value.items.begin(), value.items.end(),
                                               [](const YamlPtr& v) { return all_whole(*v); });
  return value.kind == Kind::scalar && value.type == ScalarType::integer && value.written.empty();
}

class LongForm {
 public:
  LongForm(const YamlNode& top, const std::string& directory, Diagnostics& diagnostics)
      : directory_(directory), diagnostics_(diagnostics), out_(empty_mapping(top.mark)) {
    for (const Entry& entry : top.entries) {
      const std::string& name = name_of(*entry.first);
      const bool of_run = find_written(top, "run") != nullptr && is_run_key(name);
      if (is_short_key(name) || of_run) {
        given_[name] = entry;
        if (of_run && !is_short_key(name)) run_keys_.push_back(entry);
      } else {
        out_->entries.push_back(entry);
      }
    }
  }

  YamlPtr make() {
    if (given("run") == nullptr && out_->find("step") == nullptr) {
      std::vector<std::string> unknown;
      for (const auto& [key, value] : out_->entries)
        if (find_child("benchmark", key->value) == nullptr) unknown.push_back(name_of(*key));
      const bool meant = nearest("run", unknown) != std::string();
      error(given_.begin()->second.first->mark, "there is nothing to run: the file has no `run`",
            meant ? fmt::format("is '{}' meant to be 'run'?", nearest("run", unknown))
                  : "run: COMMAND");
    }
    find_build_parameters();
    if (given("run") != nullptr) add_outpath();
    add_parameters();
    read_metrics();
    add_files();
    add_steps();
    add_pattern_sets();
    add_analyser();
    add_result();
    return out_;
  }

 private:
  struct Metric {
    YamlPtr column;    // null: a definition before it has the column
    std::string file;  // in which the pattern is searched
    YamlPtr pattern;   // null: a column alone, which is computed from others
  };

  const YamlNode* given(const char* key) const {
    const auto found = given_.find(key);
    return found == given_.end() ? nullptr : found->second.second.get();
  }
  const Mark& mark_of(const char* key) const { return given_.at(key).first->mark; }

  void error(const Mark& mark, std::string message, std::string hint = {}) {
    diagnostics_.error(mark, std::move(message), std::move(hint));
  }

  void add_outpath() {
    const YamlNode* name = out_->find("name");
    if (name == nullptr || name->kind != Kind::scalar || out_->find("outpath") != nullptr) return;
    if (!name_of(*name).empty())
      add_text(out_.get(), "outpath", name_of(*name) + "_run", name->mark);
  }

  // The mapping of names that a key has; nothing and an error if it is none.
  const std::vector<Entry>& named(const char* key) {
    static const std::vector<Entry> none;
    const YamlNode* node = given(key);
    if (node == nullptr || node->kind == Kind::null) return none;
    if (node->kind == Kind::mapping) return node->entries;
    error(node->mark, fmt::format("'{}' takes names with their values", key),
          std::string_view(key) == "parameters" ? "parameters: {size: [1, 2]}"
                                                : "metrics: {seconds: 'time = $jube_pat_fp'}");
    return none;
  }

  // The definitions of one name: a value, a mapping, or a list of mappings that tags choose from.
  static std::vector<YamlPtr> definitions(const YamlPtr& value) {
    if (is_list_of(*value, Kind::mapping)) return value->items;
    return {value};
  }

  // A mapping with `name`, and `_` or the keys of the definition. Null after an error.
  YamlPtr defined(const YamlNode& key, const YamlPtr& value) {
    YamlPtr node = empty_mapping(key.mark);
    // The mark of `name` tells definitions apart: values that share it are one list.
    node->entries.emplace_back(scalar("name", value->mark), scalar(name_of(key), key.mark));
    if (value->kind != Kind::mapping) {
      node->entries.emplace_back(scalar("_", value->mark), value);
      return node;
    }
    if (const YamlNode* name = value->find("name"); name != nullptr) {
      error(name->mark, fmt::format("'{}' has its name before the colon", name_of(key)),
            "leave out `name`");
      return nullptr;
    }
    node->entries.insert(node->entries.end(), value->entries.begin(), value->entries.end());
    return node;
  }

  // The parameters that the build's texts refer to, directly or through other parameters. The build is
  // done once for each of their values, and not for those of the others.
  void find_build_parameters() {
    const YamlNode* build = given("build");
    if (build == nullptr) return;
    const std::vector<Entry>& all = named("parameters");
    std::vector<std::string> open;
    // Also those that are exported and that the shell reads ($$NAME).
    each_text(*build, [&](const std::string& text) {
      for (const std::string& name : shell_variables(text)) open.push_back(name);
    });
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      for (const auto& [key, value] : all) {
        if (name_of(*key) != name || !build_parameters_.insert(name).second) continue;
        each_text(*value, [&](const std::string& text) {
          for (const std::string& next : variables_in(text)) open.push_back(next);
        });
        for (const std::string& beside : zipped_with(name)) open.push_back(beside);
      }
    }
  }

  // The groups of `zip`: a list of names, or a list of such lists.
  std::vector<YamlPtr> zip_groups() const {
    const auto found = given_.find("zip");
    if (found == given_.end()) return {};
    const YamlPtr& zip = found->second.second;
    return is_list_of(*zip, Kind::sequence) ? zip->items : std::vector<YamlPtr>{zip};
  }
  static std::vector<std::string> names_in(const YamlNode& group) {
    std::vector<std::string> names;
    each_text(group, [&](const std::string& text) {
      for (const std::string& name : split_strip(text, ",")) names.push_back(name);
    });
    return names;
  }
  std::vector<std::string> zipped_with(const std::string& name) const {
    for (const YamlPtr& group : zip_groups()) {
      std::vector<std::string> names = names_in(*group);
      if (std::find(names.begin(), names.end(), name) != names.end()) return names;
    }
    return {};
  }

  void add_parameters() {
    YamlPtr build, run;
    for (const auto& [key, value] : named("parameters")) {
      const bool of_build = build_parameters_.count(name_of(*key)) != 0;
      for (const YamlPtr& definition : definitions(value)) {
        const YamlPtr parameter = defined(*key, definition);
        if (parameter == nullptr) continue;
        const bool plain = parameter->find("type") == nullptr && parameter->find("mode") == nullptr;
        const YamlNode* values = parameter->find("_");
        if (plain && values != nullptr && all_whole(*values))
          parameter->entries.insert(parameter->entries.begin() + 1,
                                    {scalar("type", key->mark), scalar("int", key->mark)});
        add(set_of(of_build ? &build : &run, of_build ? "build_parameters" : "parameters"),
            "parameter", parameter);
      }
      add_column(*key, definitions(value));
    }
    const std::vector<YamlPtr> groups = zip_groups();
    for (const YamlPtr& group : groups) {
      const std::vector<std::string> names = names_in(*group);
      const bool of_build = !names.empty() && build_parameters_.count(names.front()) != 0;
      add(set_of(of_build ? &build : &run, of_build ? "build_parameters" : "parameters"), "zip",
          zip_text(group, groups.size() == 1));
    }
    if (const auto where = given_.find("where"); where != given_.end()) {
      const bool of_build = run == nullptr ? build != nullptr : all_of_build(*where->second.second);
      add(set_of(of_build ? &build : &run, of_build ? "build_parameters" : "parameters"), "where",
          where->second.second);
    }
    for (const YamlPtr& set : {build, run}) {
      if (set != nullptr) add(out_.get(), "parameterset", set);
    }
    build_set_ = build != nullptr;
    run_set_ = run != nullptr;
  }

  // Whether a rule names parameters of the build alone, so that it leaves out builds, too.
  bool all_of_build(const YamlNode& rule) {
    bool any = false, others = false;
    each_text(rule, [&](const std::string& text) {
      for (const auto& [key, value] : named("parameters")) {
        if (!names_word(text, name_of(*key))) continue;
        (build_parameters_.count(name_of(*key)) != 0 ? any : others) = true;
      }
    });
    return any && !others;
  }
  static bool names_word(const std::string& text, const std::string& name) {
    const auto is_name = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      const size_t end = at + name.size();
      if ((at == 0 || !is_name(text[at - 1])) && (end == text.size() || !is_name(text[end])))
        return true;
    }
    return false;
  }

  // A group among several is one text, since a list of names would be an element for each.
  static YamlPtr zip_text(const YamlPtr& group, bool alone) {
    return alone ? group : scalar(join(names_in(*group), ","), group->mark);
  }

  YamlNode* set_of(YamlPtr* set, const char* name) {
    if (*set == nullptr) {
      const Mark& mark = given("parameters") != nullptr ? mark_of("parameters") : out_->mark;
      *set = empty_mapping(mark);
      add_text(set->get(), "name", name, mark);
    }
    return set->get();
  }

  // A column for a parameter. Where all definitions have tags, so has the column.
  void add_column(const YamlNode& key, const std::vector<YamlPtr>& all) {
    YamlPtr column = empty_mapping(key.mark);
    add_text(column.get(), "_", name_of(key), key.mark);
    add_tags(all, column.get());
    columns_.push_back(std::move(column));
  }

  static void add_tags(const std::vector<YamlPtr>& all, YamlNode* column) {
    std::vector<std::string> tags;
    for (const YamlPtr& definition : all) {
      const YamlNode* tag = definition->find("tag");
      if (tag == nullptr) return;
      tags.push_back(all.size() > 1 ? "(" + name_of(*tag) + ")" : name_of(*tag));
    }
    add_text(column, "tag", join(tags, "|"), all.front()->mark);
  }

  void read_metrics() {
    for (const auto& [key, value] : named("metrics")) {
      const std::vector<YamlPtr> all = definitions(value);
      // Definitions that tags choose from have a column each; of others, the last one counts.
      const bool chosen = std::all_of(all.begin(), all.end(), [](const YamlPtr& definition) {
        return definition->find("tag") != nullptr;
      });
      for (const YamlPtr& definition : all) {
        Metric metric = metric_of(*key, definition);
        if (metric.column == nullptr) continue;
        if (chosen) add_tags({definition}, metric.column.get());
        if (chosen || definition == all.back()) columns_.push_back(metric.column);
        if (metric.pattern != nullptr) metrics_.push_back(std::move(metric));
      }
    }
  }

  void add_pattern_sets() {
    for (const Metric& metric : metrics_) {
      const size_t file = file_number(metric.file);
      if (file == pattern_sets_.size()) {
        YamlPtr set = empty_mapping(mark_of("metrics"));
        const std::string name = file == 0 ? "metrics" : fmt::format("metrics_{}", file + 1);
        add_text(set.get(), "name", name, set->mark);
        pattern_sets_.push_back({name, metric.file, set});
      }
      add(pattern_sets_[file].set.get(), "pattern", metric.pattern);
    }
    for (const FileSet& file : pattern_sets_) add(out_.get(), "patternset", file.set);
  }

  struct FileSet {
    std::string name, file;
    YamlPtr set;
  };
  size_t file_number(const std::string& file) const {
    size_t at = 0;
    while (at < pattern_sets_.size() && pattern_sets_[at].file != file) ++at;
    return at;
  }

  // A definition's keys are those of a pattern and those of its column.
  Metric metric_of(const YamlNode& key, const YamlPtr& definition) {
    Metric metric;
    const YamlPtr whole = defined(key, definition);
    if (whole == nullptr) return metric;
    metric.file = "stdout";
    metric.column = empty_mapping(key.mark);
    add_text(metric.column.get(), "_", name_of(key), key.mark);
    YamlPtr pattern = empty_mapping(key.mark);
    bool has_value = false, has_type = false;
    for (const Entry& entry : whole->entries) {
      const std::string& name = entry.first->value;
      const bool of_column = find_key("column", name) != nullptr || find_child("column", name);
      if (name == "file" && is_text(*entry.second)) {
        metric.file = name_of(*entry.second);
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
                              {scalar("type", key.mark), scalar("float", key.mark)});
    const YamlNode* type = pattern != nullptr ? pattern->find("type") : nullptr;
    const bool number = type == nullptr || type->value == "float" || type->value == "int";
    const bool said = metric.column->find("statistic") || metric.column->find("uncertainty") ||
                      metric.column->find("relative_to");
    if (given("repeat") != nullptr && number && !said)
      add_text(metric.column.get(), "uncertainty", "ci", key.mark);
    metric.pattern = std::move(pattern);
    return metric;
  }

  // A computed column has no pattern, so that its unit stands in the title.
  static void move_unit(const YamlNode& pattern, YamlNode* column) {
    const YamlNode* unit = pattern.find("unit");
    if (unit == nullptr || column->find("title") != nullptr) return;
    const std::string& name = column->find("_")->value;
    add_text(column, "title", fmt::format("{}[{}]", name, name_of(*unit)), unit->mark);
  }

  // The file sets. The build, and what the run's command names, have copies: a command may write to
  // them, and points of a run at the same time. What `files` names is linked for the run, as it may be
  // much data that is read.
  void add_files() {
    std::vector<YamlPtr> listed;
    if (const YamlNode* files = given("files"); files != nullptr) {
      if (files->kind == Kind::mapping) {
        error(files->mark, "'files' takes names of files, not keys", "files: [input.dat, cases]");
      } else {
        for (const std::string& name : names_in(*files)) {
          listed.push_back(scalar(name, files->mark));
          taken_.insert(name);
        }
      }
    }
    for (const char* step : {"build", "run"}) {
      const YamlNode* commands = given(step);
      if (commands == nullptr) continue;
      const bool build = std::string_view(step) == "build";
      YamlPtr set = empty_mapping(mark_of(step));
      add_text(set.get(), "name", build ? "build_files" : "files", set->mark);
      for (const YamlPtr& name : listed) add(set.get(), build ? "copy" : "link", name);
      add_named(*commands, build, set.get());
      if (set->entries.size() == 1) continue;
      add(out_.get(), "fileset", set);
      (build ? build_files_ : run_files_) = true;
    }
  }

  // What the build's commands name may be what they make.
  void warn_of_old_program(const std::set<std::string>& build_names, const YamlNode& run) {
    if (run.kind != Kind::scalar) return;
    const std::vector<ShellWord> words = shell_words(run.value);
    if (words.empty() || !starts_with(words.front().text, "./")) return;
    const std::string program = words.front().text.substr(2);
    if (build_names.count(program) == 0) return;
    diagnostics_.warning(
        run.mark,
        fmt::format("'./{}' is the file beside the workflow, not the one of the build", program),
        fmt::format("what the build makes lies in its folder: build/{}", program));
  }

  void add_named(const YamlNode& commands, bool build, YamlNode* set) {
    std::set<std::string> names;
    const auto take = [&](const std::string& text) {
      for (const ShellWord& word : shell_words(text)) {
        if (build) in_build_.insert(word.text);
        if (word.written) continue;
        const size_t equals = word.text.find('=');
        add_beside(word.text, word.quoted, &names);
        if (equals != std::string::npos)
          add_beside(word.text.substr(equals + 1), word.quoted, &names);
      }
    };
    if (commands.kind == Kind::mapping || is_list_of(commands, Kind::mapping)) {
      for (const YamlPtr& step : commands.kind == Kind::mapping
                                     ? std::vector<YamlPtr>{std::make_shared<YamlNode>(commands)}
                                     : commands.items) {
        for (const char* key : {"do", "launch"})
          if (const YamlNode* texts = step->find(key)) each_text(*texts, take);
      }
    } else {
      each_text(commands, take);
    }
    if (!build) warn_of_old_program(in_build_, commands);
    // An old file of the name would be read where the run makes none.
    names.erase("stdout");
    names.erase("stderr");
    for (const Metric& metric : metrics_) names.erase(metric.file);
    for (const std::string& name : names) {
      if (taken_.count(name) != 0 || (!build && name == "build" && given("build") != nullptr))
        continue;
      add_text(set, "copy", name, set->mark);
    }
  }

  // Adds the name in the workflow's folder under which a word's file lies. A parameter in the name
  // stands for any text. Names that a file set reads otherwise are left to `files`.
  void add_beside(const std::string& word, bool quoted, std::set<std::string>* names) const {
    std::string path = word;
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
      if (quoted || !named) return;
    }
    std::vector<std::string> found;
    const std::string pattern = escaped_for_matching(directory_) + "/" + without_parameters(path);
    if (matching_paths(pattern, &found) && !found.empty()) names->insert(first);
  }

  static std::string without_parameters(const std::string& path) {
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

  void add_steps() {
    if (given("build") != nullptr) {
      std::vector<const char*> sets;
      if (build_set_) sets.push_back("build_parameters");
      if (build_files_) sets.push_back("build_files");
      add_step("build", "do", sets);
    }
    if (given("run") != nullptr) {
      std::vector<const char*> sets;
      if (run_set_) sets.push_back("parameters");
      if (run_files_) sets.push_back("files");
      add_step("run", "launch", sets);
    } else if (YamlNode* step = only_step(); step != nullptr && run_set_) {
      if (step->find("use") == nullptr) add_text(step, "use", "parameters", step->mark);
    }
  }

  // The step of a file in the long form that has one, so that nothing has to say whose the parameters
  // and metrics are.
  YamlNode* only_step() {
    for (auto& [key, value] : out_->entries) {
      if (key->value != "step") continue;
      if (value->kind == Kind::sequence && value->items.size() != 1) return nullptr;
      YamlPtr& step = value->kind == Kind::sequence ? value->items.front() : value;
      return step->kind == Kind::mapping ? step.get() : nullptr;
    }
    return nullptr;
  }

  void add_step(const char* name, const char* text_key, const std::vector<const char*>& sets) {
    const YamlPtr& value = given_.at(name).second;
    const bool build = std::string_view(name) == "build";
    const bool one_text = is_text(*value) || (build && is_list_of(*value, Kind::scalar));
    if (!one_text && value->kind != Kind::mapping && !is_list_of(*value, Kind::mapping)) {
      error(value->mark, fmt::format("'{}' takes a command, or the keys of a step", name),
            build ? "build: [make, make install]"
                  : "commands before it: run: {do: [...], launch: COMMAND}");
      return;
    }
    for (const YamlPtr& definition : definitions(value)) {
      YamlPtr step = empty_mapping(mark_of(name));
      add_text(step.get(), "name", name, mark_of(name));
      add_text(step.get(), "kind", name, mark_of(name));
      if (!build && given("build") != nullptr)
        add_text(step.get(), "depend", "build", mark_of("build"));
      for (const char* set : sets) add_text(step.get(), "use", set, mark_of(name));
      if (!build) add_run_keys(*definition, step.get());
      if (one_text) {
        step->entries.emplace_back(scalar(text_key, mark_of(name)), definition);
      } else {
        add_step_keys(name, *definition, step.get());
      }
      add(out_.get(), "step", step);
    }
  }

  void add_step_keys(const char* name, const YamlNode& definition, YamlNode* step) {
    for (const Entry& entry : definition.entries) {
      const std::string& key = entry.first->value;
      if (key == "name" || key == "kind") {
        error(entry.first->mark, fmt::format("the step that '{}' makes is called so", name),
              fmt::format("leave out `{}`, or write the step as an item of `step`", key));
      } else {
        step->entries.push_back(entry);
      }
    }
  }

  void add_run_keys(const YamlNode& own, YamlNode* step) {
    if (const auto on = given_.find("on"); on != given_.end())
      step->entries.emplace_back(scalar("platform", on->second.first->mark), on->second.second);
    for (const Entry& entry : run_keys_) {
      const YamlNode* twice = find_written(own, name_of(*entry.first));
      if (twice != nullptr)
        error(entry.first->mark,
              fmt::format("'{}' is given beside `run` and in it", name_of(*entry.first)));
      step->entries.push_back(entry);
    }
  }

  void add_analyser() {
    if (out_->find("analyser") || out_->find("analyzer") || (metrics_.empty() && columns_.empty()))
      return;
    const YamlNode* step = given("run") != nullptr ? nullptr : only_step();
    const YamlNode* name = step != nullptr ? step->find("name") : nullptr;
    if (given("run") == nullptr && (name == nullptr || metrics_.empty())) return;
    const Mark mark = metrics_.empty() ? out_->mark : mark_of("metrics");
    YamlPtr analyser = empty_mapping(mark), analyse = empty_mapping(mark);
    add_text(analyser.get(), "name", "metrics", mark);
    add_text(analyse.get(), "step", name != nullptr ? name->value : "run", mark);
    const bool one = pattern_sets_.size() == 1;
    if (one) add_text(analyser.get(), "use", "metrics", mark);
    for (const FileSet& set : pattern_sets_) {
      YamlPtr file = empty_mapping(mark);
      if (!one) add_text(file.get(), "use", set.name, mark);
      add_text(file.get(), "_", set.file, mark);
      add(analyse.get(), "file", file);
    }
    add(analyser.get(), "analyse", analyse);
    add(out_.get(), "analyser", analyser);
    analysed_ = true;
  }

  // A table of all parameters and metrics.
  void add_result() {
    if (out_->find("result") != nullptr && given("chart") != nullptr)
      error(mark_of("chart"), "a chart belongs in the `result` of a file that has one of its own");
    if (out_->find("result") != nullptr || columns_.empty()) return;
    if (!analysed_ && given("run") == nullptr) return;
    const Mark mark = given("metrics") != nullptr ? mark_of("metrics") : out_->mark;
    YamlPtr result = empty_mapping(mark), table = empty_mapping(mark);
    if (analysed_) add_text(result.get(), "use", "metrics", mark);
    const YamlNode* name = out_->find("name");
    const bool usable = name != nullptr && name->kind == Kind::scalar && !name_of(*name).empty() &&
                        name_of(*name).find_first_of("/ ") == std::string::npos;
    if (usable) {
      add(table.get(), "name", std::make_shared<YamlNode>(*name));
    } else {
      add_text(table.get(), "name", "results", mark);
    }
    add_text(table.get(), "style", "pretty", mark);
    for (const YamlPtr& column : columns_) add(table.get(), "column", column);
    add(result.get(), "table", table);
    if (const auto chart = given_.find("chart"); chart != given_.end())
      result->entries.push_back(chart->second);
    add(out_.get(), "result", result);
  }

  const std::string& directory_;
  Diagnostics& diagnostics_;
  YamlPtr out_;
  std::map<std::string, Entry> given_;
  std::vector<Entry> run_keys_;
  std::set<std::string> build_parameters_;
  std::set<std::string> in_build_;  // words of the build's commands
  std::set<std::string> taken_;     // names that `files` links
  std::vector<YamlPtr> columns_;
  std::vector<Metric> metrics_;
  std::vector<FileSet> pattern_sets_;  // one for each file with patterns
  bool build_set_ = false, run_set_ = false, build_files_ = false, run_files_ = false;
  bool analysed_ = false;
};

}  // namespace

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
      {"chart", "keys of a `chart`", "As in a `result`."},
  };
  return keys;
}

// Keys of steps that Tally adds to JUBE's, except those that the short form has words of its own for.
bool is_run_key(std::string_view key) {
  for (const char* own : {"kind", "launch", "platform", "input", "reuse"})
    if (key == own) return false;
  if (const ElementRule* element = find_child("step", key))
    return element->language == Language::tally;
  const KeyRule* rule = find_key("step", key);
  return rule != nullptr && rule->language == Language::tally;
}

namespace {

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
  if (top.kind != Kind::mapping || find_written(top, "benchmark") != nullptr) return false;
  const bool run = find_written(top, "run") != nullptr;
  if (run && find_written(top, "step") == nullptr) return true;
  if (lacks_run(top)) return true;
  const auto keys = short_keys();
  const bool any = std::any_of(keys.begin(), keys.end(), [&](const ShortKey& key) {
    return find_written(top, key.key) != nullptr;
  });
  return any && uses_own_keys("benchmark", top);
}

YamlPtr long_form(const YamlNode& top, const std::string& directory, Diagnostics& diagnostics) {
  return LongForm(top, directory, diagnostics).make();
}

}  // namespace tally
