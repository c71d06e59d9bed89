#include "engine/check/schema_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/check/elements.h"
#include "engine/read/schema.h"
#include "engine/read/short_form.h"
#include "engine/tags/tags.h"

namespace tally {

namespace {

bool tally_element(const Element& element, const ElementRule& rule) {
  if (rule.language == Language::tally) return true;
  for (const Attribute& a : element.attributes) {
    const KeyRule* key = find_key(rule.id, a.name.value);
    if (key && key->language == Language::tally) return true;
  }
  return std::ranges::any_of(element.children, [&](const Element& child) {
    const ElementRule* below = find_child(rule.id, child.name);
    return below && tally_element(child, *below);
  });
}

// A hint about the elements where a key is allowed, for a known key in a wrong one.
std::string elsewhere(const std::string& key) {
  std::vector<std::string> elements;
  auto add = [&](const char* name) {
    if (!contains(elements, name)) elements.emplace_back(name);
  };
  for (const KeyRule& rule : key_rules()) {
    if (key == rule.key) add(find_element(rule.element)->name);
  }
  for (const ElementRule& rule : element_rules()) {
    if (key != rule.name) continue;
    for (const std::string& parent : split_strip(rule.parents, " ")) {
      const ElementRule* above = find_element(parent);
      add(above && parent != "jube" ? above->name : "top level");
    }
  }
  const auto is_key = [&](const ShortKey& one) { return key == one.key; };
  if (std::ranges::any_of(short_keys(), is_key)) add("top level, beside `run`");
  if (elements.empty() || key == "name") return {};
  return fmt::format("'{}' belongs in: {}", key, join(elements, ", "));
}

// A hint about what schedulers, and other tools, call by this word in `resources` and `platform`.
std::string resource_hint(std::string_view word) {
  static constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"queue", "partition"},
      {"class", "partition"},
      {"ntasks", "tasks_per_node"},
      {"tasks", "tasks_per_node"},
      {"ranks", "tasks_per_node"},
      {"procs", "tasks_per_node"},
      {"processes", "tasks_per_node"},
      {"ppn", "tasks_per_node"},
      {"mpiprocs", "tasks_per_node"},
      {"select", "nodes"},
      {"gpus", "gpus_per_node"},
      {"ngpus", "gpus_per_node"},
      {"cpus", "cpus_per_task"},
      {"ncpus", "cpus_per_task"},
      {"cores", "cpus_per_task"},
      {"threads", "cpus_per_task"},
      {"mem", "memory"},
      {"walltime", "time"},
      {"time_limit", "time"},
      {"project", "account"},
      {"bank", "account"},
      {"budget", "account"}};
  static constexpr std::string_view options[] = {
      "gres", "qos", "constraint", "reservation", "exclusive", "licenses", "nodelist", "exclude"};
  for (const auto& [other, key] : words)
    if (word == other) return fmt::format("did you mean '{}'?", key);
  for (const std::string_view option : options)
    if (word == option)
      return fmt::format("an option of the scheduler stands in `options: {{{}: ...}}`", option);
  return {};
}

class SchemaChecker {
 public:
  SchemaChecker(bool strict, bool is_xml, Diagnostics& diagnostics)
      : strict_(strict), is_xml_(is_xml), diagnostics_(diagnostics) {}

  void check(const Element& element, const ElementRule& rule) {
    for (const Attribute& a : element.attributes) check_attribute(element, rule, a);
    for (const Element& child : element.children) {
      const ElementRule* below = find_child(rule.id, child.name);
      if (below) {
        check(child, *below);
      } else if (!rule.free_keys) {
        unknown_element(element, rule, child);
      }
    }
    if (std::strcmp(rule.name, "env_unset") == 0) {
      for (const std::string& name : split_strip(element.text.value, ","))
        check_variable_name(name, element.text.mark);
    }
    if (names_platform(element, rule)) return;
    check_text(element, rule);
    check_required(element, rule);
  }

 private:
  // `platform: slurm` beside the steps: the key describes a platform there, and a step names one.
  bool names_platform(const Element& element, const ElementRule& rule) {
    const std::string name(strip(element.text.value));
    if (std::strcmp(rule.id, "platform") != 0 || is_xml_ || name.empty() ||
        !element.attributes.empty() || !element.children.empty())
      return false;
    diagnostics_.error(
        element.mark, "`platform` at the top of a file describes a platform, and names none",
        fmt::format("write `on: {0}` beside `run`, or `platform: {0}` in a step", name));
    return true;
  }

  void report(bool as_error, const Mark& mark, std::string message, std::string hint,
              WarningKind kind = {}) {
    if (as_error) {
      diagnostics_.error(mark, std::move(message), std::move(hint));
    } else {
      diagnostics_.warning(mark, std::move(message), std::move(hint), std::move(kind));
    }
  }

  std::string hint_for(const ElementRule& rule, const std::string& name) {
    std::string hint = did_you_mean(name, known_names(rule.id));
    for (const char* described : {"resources", "platform"}) {
      if (hint.empty() && std::strcmp(rule.id, described) == 0) hint = resource_hint(name);
    }
    const std::string_view meant = key_meant_by(name);
    if (hint.empty() && strict_ && !meant.empty() && std::strcmp(rule.id, "benchmark") == 0)
      return fmt::format("did you mean '{}'?", meant);
    return hint.empty() ? elsewhere(name) : hint;
  }

  void unknown_element(const Element& parent, const ElementRule& rule, const Element& child) {
    if (is_xml_) {
      std::string hint = hint_for(rule, child.name);
      if (find_key(rule.id, child.name)) {
        hint = fmt::format("'{0}' is an attribute: <{1} {0}=\"...\">", child.name, rule.name);
      }
      diagnostics_.error(child.mark,
                         fmt::format("unknown element <{}> in {}", child.name, describe(parent)),
                         std::move(hint));
    } else {
      report_unknown_key(parent, rule, child.name, child.mark);
    }
  }

  // YAML reads `- echo a: b` as a mapping. Without an error the command would be lost.
  void report_unknown_key(const Element& element, const ElementRule& rule, const std::string& name,
                          const Mark& mark) {
    const bool command =
        std::strcmp(rule.name, "do") == 0 || std::strcmp(rule.name, "prepare") == 0;
    const bool lost = !is_xml_ && command && strip(element.text.value).empty() &&
                      name.find(' ') != std::string::npos;
    report(strict_ || lost, mark, fmt::format("unknown key '{}' in {}", name, describe(element)),
           lost ? "a command with ': ' in it must be quoted" : hint_for(rule, name),
           {fmt::format("{}/{}", element.name, name), element.get("name")});
  }

  // A parameter may be part of the name.
  void check_variable_name(const std::string& name, const Mark& mark) {
    if (is_variable_name(name) || !variables_in(name).empty()) return;
    diagnostics_.error(
        mark, fmt::format("'{}' is not the name of an environment variable", one_line(name)),
        "names have letters, digits and underscores, and no digit first");
  }

  void check_attribute(const Element& element, const ElementRule& rule, const Attribute& a) {
    if (a.name.value == "tag") {
      bool ignored = false;
      if (const Status parsed = evaluate_tags(a.value.value, {}, &ignored); !parsed) {
        diagnostics_.error(a.value.mark, parsed.message(),
                           "names joined by ! + | ^ and parentheses");
      }
      return;
    }
    if (rule.free_keys) {
      const std::string_view sets = rule.name;
      if (sets == "env" || sets == "interconnect") check_variable_name(a.name.value, a.name.mark);
      return;
    }
    const KeyRule* key = find_key(rule.id, a.name.value);
    if (key) {
      check_value(element, *key, a.value);
      return;
    }
    if (is_xml_ && find_child(rule.id, a.name.value)) {
      report(strict_, a.name.mark,
             fmt::format("unknown attribute '{}' in {}", a.name.value, describe(element)),
             fmt::format("<{}> is an element of its own", a.name.value));
      return;
    }
    report_unknown_key(element, rule, a.name.value, a.name.mark);
  }

  void check_value(const Element& element, const KeyRule& key, const Text& value) {
    std::string text(strip(value.value));
    if (text.empty()) return;
    auto bad = [&](bool as_error, const std::string& hint) {
      report(
          as_error || strict_, value.mark,
          fmt::format("'{}' is not a valid value for '{}' in {}", text,
                      std::strcmp(key.key, "_") == 0 ? element.name : key.key, describe(element)),
          hint, {fmt::format("{}/{}={}", element.name, key.key, text), element.get("name")});
    };
    bool flag = false;
    switch (key.rule) {
      case ValueRule::choice: {
        auto choices = choices_of(key);
        if (contains(choices, text)) break;
        std::string near = did_you_mean(text, choices);
        // JUBE accepts any type and treats an unknown one as a string.
        bad(std::strcmp(key.key, "type") != 0,
            near.empty() ? "one of: " + join(choices, ", ") : near);
        break;
      }
      case ValueRule::boolean:
        if (!parse_boolean(text, &flag)) bad(false, "true or false");
        break;
      case ValueRule::number:
        if (!is_number_or_parameter(text)) bad(true, "a whole number, or a $parameter");
        break;
      case ValueRule::duration:
        if (!is_duration_or_parameter(text)) bad(true, "seconds, 30m, 2h, HH:MM:SS or D-HH:MM:SS");
        break;
      case ValueRule::identifier:
        if (!is_identifier(text)) {
          diagnostics_.error(value.mark,
                             fmt::format("'{}' cannot be the name of a {}", text, element.name),
                             "letters, digits and underscores, not a digit first");
        }
        break;
      case ValueRule::name:
        if (text.find('/') != std::string::npos) {
          bad(true, "a name becomes part of a path, so it holds no '/'");
        }
        break;
      case ValueRule::names:
        check_names(element, key, {text, value.mark});
        break;
      case ValueRule::text:
      case ValueRule::expression:
        break;
    }
  }

  void check_names(const Element& element, const KeyRule& key, const Text& value) {
    auto choices = choices_of(key);
    if (choices.empty()) return;
    for (const std::string& name : split_strip(value.value, ",")) {
      if (contains(choices, name)) continue;
      std::string near = did_you_mean(name, choices);
      diagnostics_.error(value.mark,
                         fmt::format("'{}' is not a valid value for '{}'", name, element.name),
                         near.empty() ? "one of: " + join(choices, ", ") : near);
    }
  }

  void check_text(const Element& element, const ElementRule& rule) {
    if (strip(element.text.value).empty()) return;
    const KeyRule* key = find_key(rule.id, "_");
    // XML files often have a stray comma or character between elements. JUBE ignores it.
    if (!key) {
      const Mark& mark = element.text.mark.known() ? element.text.mark : element.mark;
      if (std::strcmp(rule.id, "include-path") == 0) return;
      report(strict_ || !is_xml_, mark, fmt::format("{} holds no text", describe(element)),
             "it takes keys: " + join(known_names(rule.id), ", "));
      return;
    }
    check_value(element, *key, element.text);
  }

  // JUBE's words where its users write angle brackets.
  std::string missing(const Element& element, const ElementRule& rule, const char* key) const {
    if (is_xml_) return fmt::format("Missing attribute '{}' in <{}>", key, rule.name);
    const std::string which = describe(element);
    return fmt::format("{}{} has no '{}'", which == element.name ? "this " : "", which, key);
  }

  void check_required(const Element& element, const ElementRule& rule) {
    for (const KeyRule& key : key_rules()) {
      if (!key.required || std::strcmp(key.element, rule.id) != 0) continue;
      if (std::strcmp(key.key, "_") == 0) {
        bool needed =
            key.language == Language::tally || element.name == "column" || element.name == "key";
        if (!needed || !strip(element.text.value).empty()) continue;
        diagnostics_.error(element.mark, fmt::format("{} is empty", describe(element)), key.doc);
      } else {
        const Attribute* given = element.find(key.key);
        if (given && !strip(given->value.value).empty()) continue;
        diagnostics_.error(given ? given->name.mark : element.mark, missing(element, rule, key.key),
                           key.doc);
      }
    }
  }

  bool strict_;
  bool is_xml_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::string describe(const Element& element) {
  if (element.name == "jube") return "the top level";
  std::string name(strip(element.get("name")));
  if (name.empty() && (element.name == "column" || element.name == "key")) {
    name = strip(element.text.value);
  }
  if (name.empty()) return element.name;
  return fmt::format("{} '{}'", element.name, name);
}

Rules rules_of(const Element& root, bool called_as_jube) {
  const bool own = !called_as_jube && tally_element(root, *find_element("jube"));
  return own ? Rules::tally() : Rules::jube();
}

void check_schema(const Element& root, bool strict, bool is_xml, Diagnostics& diagnostics) {
  SchemaChecker(strict, is_xml, diagnostics).check(root, *find_element("jube"));
}

void check_set_schema(const Element& root, bool strict, bool is_xml, Diagnostics& diagnostics) {
  for (const Element& child : root.children) {
    const ElementRule* rule = find_child("jube", child.name);
    if (child.name == "benchmark") {
      check_set_schema(child, strict, is_xml, diagnostics);
    } else if (rule && find_child("benchmark", child.name)) {
      SchemaChecker(strict, is_xml, diagnostics).check(child, *rule);
    }
  }
}

}  // namespace tally
