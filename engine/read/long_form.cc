#include "engine/read/short_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/shell_words.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/read/schema.h"
#include "engine/read/yaml_tree.h"

namespace tally {
namespace {

using Kind = YamlNode::Kind;
using Entry = std::pair<YamlPtr, YamlPtr>;

bool is_short_key(std::string_view key) {
  const auto keys = short_keys();
  return std::ranges::any_of(keys, [&](const ShortKey& k) { return key == k.key; });
}

// Whether all values are whole numbers that are written as such: `type: int` changes none of them.
bool all_whole(const YamlNode& value) {
  if (value.kind == Kind::sequence)
    return !value.items.empty() &&
           std::ranges::all_of(value.items, [](const YamlPtr& v) { return all_whole(*v); });
  return value.kind == Kind::scalar && value.type == ScalarType::integer && value.written.empty();
}

class LongForm {
 public:
  LongForm(const YamlNode& top, const std::string& file, const std::string& directory,
           Diagnostics& diagnostics)
      : directory_(directory), diagnostics_(diagnostics), out_(make_mapping(top.mark)) {
    if (find_written(top, "run") != nullptr && find_written(top, "name") == nullptr)
      add_text(out_.get(), "name", std::filesystem::path(file).stem().string(), top.mark);
    for (const Entry& entry : top.entries) {
      const std::string& name = written_text(*entry.first);
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
        if (find_child("benchmark", key->value) == nullptr) unknown.push_back(written_text(*key));
      std::string meant = nearest("run", unknown);
      for (const std::string& word : unknown)
        if (meant.empty() && key_meant_by(word) == "run") meant = word;
      error(given_.begin()->second.first->mark, "there is nothing to run: the file has no `run`",
            meant.empty() ? "run: COMMAND" : fmt::format("is '{}' meant to be 'run'?", meant));
    }
    find_build_parameters();
    if (given("run") != nullptr) add_outpath();
    add_parameters();
    add_points_of_resources();
    read_metrics();
    add_files();
    add_steps();
    add_pattern_sets();
    add_analyser();
    add_result();
    return out_;
  }

 private:
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
    if (!written_text(*name).empty())
      add_text(out_.get(), "outpath", written_text(*name) + "_run", name->mark);
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
    YamlPtr node = make_mapping(key.mark);
    // The mark of `name` tells definitions apart: values that share it are one list.
    node->entries.emplace_back(make_scalar("name", value->mark),
                               make_scalar(written_text(key), key.mark));
    if (value->kind != Kind::mapping) {
      node->entries.emplace_back(make_scalar("_", value->mark), value);
      return node;
    }
    if (const YamlNode* name = value->find("name"); name != nullptr) {
      error(name->mark, fmt::format("'{}' has its name before the colon", written_text(key)),
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
        if (written_text(*key) != name || !build_parameters_.insert(name).second) continue;
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
      if (contains(names, name)) return names;
    }
    return {};
  }

  void add_parameters() {
    YamlPtr build, run;
    for (const auto& [key, value] : named("parameters")) {
      // {n: 1, 2, 4} is a list without its brackets. One message is enough.
      if (value->kind == Kind::null && !is_variable_name(written_text(*key))) {
        error(key->mark, fmt::format("'{}' has no value, and cannot be a name", written_text(*key)),
              "several values are a list: {size: [1, 2, 4]}");
        break;
      }
      const bool of_build = build_parameters_.count(written_text(*key)) != 0;
      for (const YamlPtr& definition : definitions(value)) {
        const YamlPtr parameter = defined(*key, definition);
        if (parameter == nullptr) continue;
        const bool plain = parameter->find("type") == nullptr && parameter->find("mode") == nullptr;
        const YamlNode* values = parameter->find("_");
        if (plain && values != nullptr && all_whole(*values))
          parameter->entries.insert(
              parameter->entries.begin() + 1,
              {make_scalar("type", key->mark), make_scalar("int", key->mark)});
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
        if (!names_word(text, written_text(*key))) continue;
        (build_parameters_.count(written_text(*key)) != 0 ? any : others) = true;
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
    return alone ? group : make_scalar(join(names_in(*group), ","), group->mark);
  }

  YamlNode* set_of(YamlPtr* set, const char* name) {
    if (*set == nullptr) {
      const Mark& mark = given("parameters") != nullptr ? mark_of("parameters") : out_->mark;
      *set = make_mapping(mark);
      add_text(set->get(), "name", name, mark);
    }
    return set->get();
  }

  // Columns for the keys of `resources` that have a list, as they are parameters.
  void add_points_of_resources() {
    for (const char* name : {"run", "resources"}) {
      const auto found = given_.find(name);
      if (found == given_.end()) continue;
      const YamlPtr& value = found->second.second;
      if (std::string_view(name) == "resources") {
        each_points(value);
      } else {
        for (const YamlPtr& definition : definitions(value)) points_of_step(*definition);
      }
    }
    if (const YamlNode* step = given("run") == nullptr ? only_step() : nullptr; step != nullptr)
      points_of_step(*step);
    for (const auto& [key, all] : points_) add_column(*key, all);
  }
  void points_of_step(const YamlNode& step) {
    for (const Entry& entry : step.entries)
      if (written_text(*entry.first) == "resources") each_points(entry.second);
  }
  void each_points(const YamlPtr& resources) {
    for (const YamlPtr& definition : definitions(resources)) add_points(definition);
  }
  void add_points(const YamlPtr& resources) {
    for (const auto& [key, value] : resources->entries) {
      if (value->kind != Kind::sequence || !takes_points("resources", written_text(*key))) continue;
      const auto same = std::ranges::find_if(
          points_, [&](const auto& one) { return written_text(*one.first) == written_text(*key); });
      if (same == points_.end()) {
        points_.push_back({key, {resources}});
      } else {
        same->second.push_back(resources);
      }
    }
  }

  // A column for a parameter. Where all definitions have tags, so has the column.
  void add_column(const YamlNode& key, const std::vector<YamlPtr>& all) {
    YamlPtr column = make_mapping(key.mark);
    add_text(column.get(), "_", written_text(key), key.mark);
    add_tags(all, column.get());
    columns_.push_back(std::move(column));
  }

  static void add_tags(const std::vector<YamlPtr>& all, YamlNode* column) {
    std::vector<std::string> tags;
    for (const YamlPtr& definition : all) {
      const YamlNode* tag = definition->find("tag");
      if (tag == nullptr) return;
      tags.push_back(all.size() > 1 ? "(" + written_text(*tag) + ")" : written_text(*tag));
    }
    add_text(column, "tag", join(tags, "|"), all.front()->mark);
  }

  void read_metrics() {
    for (const auto& [key, value] : named("metrics")) {
      const std::vector<YamlPtr> all = definitions(value);
      // Definitions that tags choose from have a column each; of others, the last one counts.
      const bool chosen = std::ranges::all_of(
          all, [](const YamlPtr& definition) { return definition->find("tag") != nullptr; });
      for (const YamlPtr& definition : all) {
        const YamlPtr whole = defined(*key, definition);
        if (whole == nullptr) continue;
        const bool repeated = given("repeat") != nullptr && !tells_rows_apart(written_text(*key));
        Metric metric = metric_of(*key, *whole, repeated);
        if (chosen) add_tags({definition}, metric.column.get());
        if (chosen || definition == all.back()) columns_.push_back(metric.column);
        if (metric.pattern != nullptr) metrics_.push_back(std::move(metric));
      }
    }
  }

  // A value that tells rows apart is the same in all repeats of its row.
  bool tells_rows_apart(const std::string& metric) const {
    const YamlNode* rows = given("rows");
    if (rows == nullptr) return false;
    const std::vector<std::string> names = names_in(*rows);
    return contains(names, metric);
  }

  void add_pattern_sets() {
    for (const Metric& metric : metrics_) {
      const size_t file = file_number(metric.file);
      if (file == pattern_sets_.size()) {
        YamlPtr set = make_mapping(mark_of("metrics"));
        const std::string name = file == 0 ? "metrics" : fmt::format("metrics_{}", file + 1);
        add_text(set.get(), "name", name, set->mark);
        const Mark& mark = metric.file_mark.known() ? metric.file_mark : set->mark;
        pattern_sets_.push_back({name, metric.file, mark, set});
      }
      add(pattern_sets_[file].set.get(), "pattern", metric.pattern);
    }
    for (const FileSet& file : pattern_sets_) add(out_.get(), "patternset", file.set);
  }

  struct FileSet {
    std::string name, file;
    Mark mark;  // of the file's name
    YamlPtr set;
  };
  size_t file_number(const std::string& file) const {
    size_t at = 0;
    while (at < pattern_sets_.size() && pattern_sets_[at].file != file) ++at;
    return at;
  }

  // The file sets. The build, and what the run's command names, have copies: a command may write to
  // them, and points of a run at the same time. A file that `files` names is linked for the run, as
  // it may be much data that is read.
  void add_files() {
    std::vector<YamlPtr> listed;
    if (const YamlNode* files = given("files"); files != nullptr) {
      if (files->kind == Kind::mapping) {
        error(files->mark, "'files' takes names of files, not keys", "files: [input.dat, cases]");
      } else {
        for (const std::string& name : names_in(*files)) {
          listed.push_back(make_scalar(name, files->mark));
          taken_.insert(name);
        }
      }
    }
    for (const char* step : {"build", "run"}) {
      const YamlNode* commands = given(step);
      if (commands == nullptr) continue;
      const bool build = std::string_view(step) == "build";
      YamlPtr set = make_mapping(mark_of(step));
      add_text(set.get(), "name", build ? "build_files" : "files", set->mark);
      for (const YamlPtr& name : listed) add(set.get(), build ? "copy" : "link", name);
      add_named(*commands, build, set.get());
      if (set->entries.size() == 1) continue;
      add(out_.get(), "fileset", set);
      (build ? build_files_ : run_files_) = true;
    }
  }

  void add_named(const YamlNode& commands, bool build, YamlNode* set) {
    std::set<std::string> names;
    const auto take = [&](const std::string& text) {
      add_names_beside(text, directory_, &names);
      if (!build) return;
      for (const ShellWord& word : shell_words(text)) in_build_.insert(word.text);
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
    if (commands.kind == Kind::scalar) {
      warn_of_paths_above(commands, directory_, diagnostics_);
      if (!build) warn_of_program(commands, in_build_, directory_, diagnostics_);
    }
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
      YamlPtr step = make_mapping(mark_of(name));
      add_text(step.get(), "name", name, mark_of(name));
      add_text(step.get(), "kind", name, mark_of(name));
      if (!build && given("build") != nullptr)
        add_text(step.get(), "depend", "build", mark_of("build"));
      for (const char* set : sets) add_text(step.get(), "use", set, mark_of(name));
      if (!build) add_run_keys(*definition, step.get());
      if (one_text) {
        step->entries.emplace_back(make_scalar(text_key, mark_of(name)), definition);
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
      step->entries.emplace_back(make_scalar("platform", on->second.first->mark),
                                 on->second.second);
    for (const Entry& entry : run_keys_) {
      const YamlNode* twice = find_written(own, written_text(*entry.first));
      if (twice != nullptr)
        error(entry.first->mark,
              fmt::format("'{}' is given beside `run` and in it", written_text(*entry.first)));
      step->entries.push_back(entry);
    }
  }

  void add_analyser() {
    const bool own = out_->find("analyser") != nullptr || out_->find("analyzer") != nullptr;
    if (given("rows") != nullptr && (own || metrics_.empty()))
      error(mark_of("rows"), "'rows' names metrics, and this file has none that it reads",
            own ? "write it in the `analyser`" : "metrics: {size: PATTERN}");
    if (own || (metrics_.empty() && columns_.empty())) return;
    const YamlNode* step = given("run") != nullptr ? nullptr : only_step();
    const YamlNode* name = step != nullptr ? step->find("name") : nullptr;
    if (given("run") == nullptr && (name == nullptr || metrics_.empty())) return;
    const Mark mark = metrics_.empty() ? out_->mark : mark_of("metrics");
    YamlPtr analyser = make_mapping(mark), analyse = make_mapping(mark);
    add_text(analyser.get(), "name", "metrics", mark);
    add_text(analyse.get(), "step", name != nullptr ? name->value : "run", mark);
    const bool one = pattern_sets_.size() == 1;
    if (one) add_text(analyser.get(), "use", "metrics", mark);
    if (const auto rows = given_.find("rows"); rows != given_.end())
      analyser->entries.push_back(rows->second);
    for (const FileSet& set : pattern_sets_) {
      YamlPtr file = make_mapping(mark);
      if (!one) add_text(file.get(), "use", set.name, mark);
      add_text(file.get(), "_", set.file, set.mark);
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
    YamlPtr result = make_mapping(mark), table = make_mapping(mark);
    if (analysed_) add_text(result.get(), "use", "metrics", mark);
    const YamlNode* name = out_->find("name");
    const bool usable = name != nullptr && name->kind == Kind::scalar &&
                        !written_text(*name).empty() &&
                        written_text(*name).find_first_of("/ ") == std::string::npos;
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
  // Keys of `resources` with a list, and the mappings that have them.
  std::vector<std::pair<YamlPtr, std::vector<YamlPtr>>> points_;
  std::vector<Metric> metrics_;
  std::vector<FileSet> pattern_sets_;  // one for each file with patterns
  bool build_set_ = false, run_set_ = false, build_files_ = false, run_files_ = false;
  bool analysed_ = false;
};

}  // namespace

YamlPtr long_form(const YamlNode& top, const std::string& file, const std::string& directory,
                  Diagnostics& diagnostics) {
  return LongForm(top, file, directory, diagnostics).make();
}

}  // namespace tally
