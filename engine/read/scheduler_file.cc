#include "engine/read/scheduler_file.h"

#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <string_view>
#include <vector>

#include "engine/base/text.h"
#include "engine/read/yaml_tree.h"

namespace tally {
namespace {

using Kind = YamlNode::Kind;

struct Key {
  const char* name;
  std::function<void(const YamlNode&)> read;
  bool required = false;
};

class TableReader {
 public:
  TableReader(SchedulerTable* table, Diagnostics& diagnostics)
      : table_(*table), diagnostics_(diagnostics) {}

  void read(const YamlNode& root) {
    read_keys(root, "the table",
              {{"scheduler", text(&table_.name), true},
               {"title", text(&table_.title), true},
               {"tested", text(&table_.tested)},
               {"submit", [&](const YamlNode& node) { read_submit(node); }, true},
               {"query", [&](const YamlNode& node) { read_question(node, "query", &table_.query); },
                true},
               {"account",
                [&](const YamlNode& node) { read_question(node, "account", &table_.account); }},
               {"find", command(&table_.find, {"user", "since"})},
               {"cancel", command(&table_.cancel, {"ids"}), true},
               {"programs", words(&table_.programs)},
               {"queues", command(&table_.queues, {})},
               {"accounts", command(&table_.accounts, {"user"})},
               {"since", text(&table_.since)},
               {"pause", number(&table_.pause)},
               {"states", [&](const YamlNode& node) { read_states(node); }, true},
               {"directives", [&](const YamlNode& node) { read_directives(node); }, true},
               {"job", [&](const YamlNode& node) { read_job(node); }, true}});
    if (contains(table_.cancel, "$ids") || table_.cancel.empty()) return;
    diagnostics_.error(root.find("cancel")->mark, "the command that cancels does not name $ids",
                       "as in [qdel, $ids]");
  }

 private:
  using Reader = std::function<void(const YamlNode&)>;

  void read_keys(const YamlNode& node, const std::string& where, const std::vector<Key>& keys) {
    if (node.kind != Kind::mapping) {
      diagnostics_.error(node.mark, fmt::format("{} is a mapping of keys to values", where));
      return;
    }
    std::vector<std::string> names;
    for (const Key& key : keys) names.emplace_back(key.name);
    for (const auto& [name, value] : node.entries) {
      bool known = false;
      for (const Key& key : keys) {
        if (written_text(*name) != key.name) continue;
        key.read(*value);
        known = true;
      }
      if (!known) {
        const std::string hint = did_you_mean(written_text(*name), names);
        diagnostics_.error(name->mark,
                           fmt::format("unknown key '{}' in {}", written_text(*name), where),
                           hint.empty() ? "its keys: " + join(names, ", ") : hint);
      }
    }
    for (const Key& key : keys) {
      if (key.required && find_written(node, key.name) == nullptr)
        diagnostics_.error(node.mark, fmt::format("{} has no '{}'", where, key.name));
    }
  }

  // --- readers of values ---

  bool is_scalar(const YamlNode& node) {
    if (node.kind == Kind::scalar) return true;
    if (node.kind != Kind::null) diagnostics_.error(node.mark, "this is a text");
    return false;
  }

  Reader text(std::string* into) {
    return [this, into](const YamlNode& node) {
      if (is_scalar(node)) *into = written_text(node);
    };
  }

  Reader number(double* into) {
    return [this, into](const YamlNode& node) {
      if (!is_scalar(node)) return;
      char* end = nullptr;
      const std::string& given = written_text(node);
      *into = std::strtod(given.c_str(), &end);
      if (*end != '\0' || given.empty() || !(*into >= 0))
        diagnostics_.error(node.mark, fmt::format("'{}' is not a number from 0 on", given));
    };
  }

  // A list, or one text; with `split` a text's words.
  Reader list(std::vector<std::string>* into, bool split = false) {
    return [this, into, split](const YamlNode& node) {
      if (node.kind == Kind::sequence) {
        for (const YamlPtr& item : node.items)
          if (is_scalar(*item)) into->push_back(written_text(*item));
      } else if (is_scalar(node) && split) {
        *into = split_strip(one_line(written_text(node)), " ");
      } else if (node.kind == Kind::scalar) {
        into->push_back(written_text(node));
      }
    };
  }

  Reader words(std::vector<std::string>* into) { return list(into, true); }

  // The words of a command that may have these values.
  Reader command(std::vector<std::string>* into, std::vector<std::string_view> values) {
    return [this, into, values = std::move(values)](const YamlNode& node) {
      words(into)(node);
      if (into->empty()) diagnostics_.error(node.mark, "this command has no words");
      // A shell's own $words are in words with blanks.
      for (const std::string& word : *into) {
        if (word.find_first_of(" \n") == std::string::npos) check_values(word, values, node.mark);
      }
    };
  }

  Reader map(std::map<std::string, std::string>* into) {
    return [this, into](const YamlNode& node) {
      if (node.kind != Kind::mapping)
        diagnostics_.error(node.mark, "this is a mapping of names to texts");
      for (const auto& [name, value] : node.entries)
        if (is_scalar(*value)) (*into)[written_text(*name)] = written_text(*value);
    };
  }

  template <typename Names>
  void check_values(const std::string& text, const Names& names, const Mark& mark) {
    for (size_t at = text.find('$'); at != std::string::npos; at = text.find('$', at + 1)) {
      size_t end = at + 1;
      while (end < text.size() && is_name_char(text[end])) ++end;
      const std::string name = text.substr(at + 1, end - at - 1);
      if (contains(names, name)) continue;
      std::vector<std::string> all;
      for (const auto& one : names) all.push_back("$" + std::string(one));
      diagnostics_.error(mark, fmt::format("'{}' is no value that may stand here", "$" + name),
                         "there are " + join(all, ", "));
    }
  }

  // --- parts of the table ---

  void read_submit(const YamlNode& node) {
    static const std::vector<std::string_view> of_id = {"id"};
    read_keys(node, "submit",
              {{"command", command(&table_.submit, {"name", "script"}), true},
               {"id",
                [&](const YamlNode& id) {
                  text (&table_.id)(id);
                  check_values(table_.id, of_id, id.mark);
                  if (table_.id.find("$id") == std::string::npos)
                    diagnostics_.error(id.mark, "the form of an id does not say where $id stands");
                },
                true},
               {"full", list(&table_.full)},
               {"away", list(&table_.away)},
               {"letter", text(&table_.letter)},
               {"environment", words(&table_.environment)}});
  }

  void read_form(const YamlNode& node, AnswerForm* form) {
    static const std::vector<std::pair<std::string, AnswerForm::Kind>> kinds = {
        {"columns", AnswerForm::Kind::columns},
        {"xml", AnswerForm::Kind::xml},
        {"equals", AnswerForm::Kind::equals},
        {"blanks", AnswerForm::Kind::blanks}};
    for (const auto& [name, kind] : kinds) {
      if (written_text(node) != name) continue;
      form->kind = kind;
      return;
    }
    diagnostics_.error(node.mark, fmt::format("'{}' is no form of an answer", written_text(node)),
                       "forms are columns, xml, equals and blanks");
  }

  void read_question(const YamlNode& node, const char* name, TableQuestion* question) {
    AnswerForm& form = question->answer;
    read_keys(node, name,
              {{"command", command(&question->command, {"ids", "user", "since"}), true},
               {"form", [&](const YamlNode& value) { read_form(value, &form); }, true},
               {"separator", text(&form.separator)},
               {"fields", words(&form.fields)},
               {"begin", text(&form.begin)},
               {"end", text(&form.end)},
               {"complete", text(&form.complete)},
               {"time", text(&form.time)},
               {"values", map(&form.values)},
               {"unknown_job", list(&question->unknown_job)}});
    const bool columns = form.kind == AnswerForm::Kind::columns;
    if (columns && (form.separator.empty() || form.fields.empty()))
      diagnostics_.error(node.mark,
                         fmt::format("columns of {} need a 'separator' and 'fields'", name));
    if (!columns && form.begin.empty())
      diagnostics_.error(node.mark,
                         fmt::format("{} does not say how a job begins ('begin')", name));
    for (const auto& [ours, theirs] : form.values) {
      if (contains(answer_values(), ours)) continue;
      diagnostics_.error(node.find("values")->mark, fmt::format("'{}' is no value of a job", ours),
                         fmt::format("values are {}", fmt::join(answer_values(), ", ")));
    }
    for (const char* needed : {"id", "name"}) {
      if (contains(form.fields, needed) || form.values.count(needed) > 0) continue;
      diagnostics_.error(node.mark,
                         fmt::format("{} does not say which field is a job's {}", name, needed));
    }
  }

  void read_states(const YamlNode& node) {
    if (!is_list_of(node, Kind::mapping)) {
      diagnostics_.error(node.mark, "states are a list of rules, as {is: queued, state: PD}");
      return;
    }
    for (const YamlPtr& item : node.items) {
      StateRule rule;
      bool given = false;
      for (const auto& [name, value] : item->entries) {
        if (written_text(*name) == "is") {
          given = true;
          read_meaning(*value, &rule.meaning);
        } else {
          list (&rule.when.emplace_back(written_text(*name), std::vector<std::string>()).second)(
              *value);
        }
      }
      if (!given) diagnostics_.error(item->mark, "the rule does not say what the state `is`");
      if (rule.when.empty())
        diagnostics_.error(item->mark, "the rule holds for every job: it names no field");
      table_.states.push_back(std::move(rule));
    }
  }

  void read_meaning(const YamlNode& node, JobMeaning* into) {
    std::vector<std::string> names;
    for (const auto& [name, meaning] : job_meanings()) {
      names.emplace_back(name);
      if (written_text(node) != name) continue;
      *into = meaning;
      return;
    }
    diagnostics_.error(node.mark,
                       fmt::format("'{}' is nothing that a state may be", written_text(node)),
                       "states are " + join(names, ", "));
  }

  void read_directives(const YamlNode& node) {
    DirectiveRules& rules = table_.directives;
    read_keys(node, "directives",
              {{"prefix", text(&rules.prefix), true},
               {"lines",
                [&](const YamlNode& lines) {
                  list (&rules.lines)(lines);
                  for (const std::string& line : rules.lines)
                    check_values(line, directive_values(), lines.mark);
                },
                true},
               {"option", text(&rules.option), true},
               {"plain", text(&rules.plain)},
               {"quotes", text(&rules.quotes)},
               {"never", text(&rules.never)},
               {"in_name", text(&rules.in_name)},
               {"memory", map(&rules.memory)},
               {"with_value", words(&rules.with_value)},
               {"without", words(&rules.without)},
               {"adds_up", words(&rules.adds_up)},
               {"several", words(&rules.several)},
               {"keys", map(&rules.keys)},
               {"own", map(&rules.own)}});
  }

  void read_job(const YamlNode& node) {
    read_keys(node, "job",
              {{"launcher", text(&table_.launcher)},
               {"script", list(&table_.script)},
               {"id", text(&table_.job_id), true},
               {"name", text(&table_.job_name)},
               {"restarts", text(&table_.job_restarts)}});
  }

  SchedulerTable& table_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::string scheduler_file(const std::string& name) {
  return scheduler_folder + name + ".yaml";
}

std::string table_of_file(const std::string& path) {
  constexpr std::string_view ending = ".yaml";
  const std::string_view folder = scheduler_folder;
  const size_t at = path.rfind('/');
  if (at == std::string::npos || path.size() < at + 1 + ending.size()) return {};
  if (path.compare(path.size() - ending.size(), ending.size(), ending) != 0) return {};
  const std::string_view before = std::string_view(path).substr(0, at + 1);
  const bool there =
      before.size() >= folder.size() && before.substr(before.size() - folder.size()) == folder &&
      (before.size() == folder.size() || before[before.size() - folder.size() - 1] == '/');
  const std::string name = path.substr(at + 1, path.size() - at - 1 - ending.size());
  return there && name != "platform" ? name : std::string();
}

std::shared_ptr<const SchedulerTable> read_scheduler_table(const std::string& path, uint32_t file,
                                                           const std::string& text,
                                                           Diagnostics& diagnostics) {
  const size_t before = diagnostics.error_count();
  auto table = std::make_shared<SchedulerTable>();
  table->file = path;
  const YamlPtr root = parse_yaml(file, text, diagnostics);
  if (root) TableReader(table.get(), diagnostics).read(*root);
  if (root && diagnostics.error_count() == before && table->name != table_of_file(path)) {
    diagnostics.error(root->find("scheduler")->mark,
                      fmt::format("the table of '{}' is in a file of another name", table->name),
                      fmt::format("call it {}", scheduler_file(table->name)));
  }
  return diagnostics.error_count() == before ? table : nullptr;
}

}  // namespace tally
