#include "engine/check/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/base/text.h"
#include "engine/check/reference_examples.h"
#include "engine/read/schema.h"
#include "engine/read/short_form.h"

namespace tally {

namespace {

constexpr const char* kHead =
    "# Reference of the workflow language\n"
    "\n"
    "Every element and every key that Tally reads. This page is made from the table in\n"
    "`engine/read/schema.cc` that the checker works with; a test keeps it current.\n"
    "\n"
    "- In YAML an element is a key of the one that holds it: one mapping, or a list of them; where "
    "an\n"
    "  element has no keys but its text, the text alone will do. `_` is the element's own text. In "
    "XML an\n"
    "  element is a tag and a key an attribute; `_` is what stands between the tags.\n"
    "- A YAML file with one benchmark has the keys of `benchmark` at its top level.\n"
    "- Every element may have a key `tag`: an expression of tags joined by `^` `!` `+` `|`, "
    "binding in\n"
    "  that order; the element is left out when it does not hold.\n"
    "- In paths `~` and the environment's `$NAME`s stand for what they are in a shell, once the "
    "parameters\n"
    "  are put in.\n"
    "- **T** marks what Tally adds to JUBE's language. In a file that uses any of it, an unknown "
    "key is an\n"
    "  error, a plain value is the text as it is written ([below](#plain-values)), a parameter's "
    "values may\n"
    "  be a list (`_: [1, 2]`), and a `${name}` in a command that no parameter, command or "
    "environment has\n"
    "  is an error (`$$name` leaves it to the shell). In plain JUBE language all this is as in "
    "JUBE, with\n"
    "  warnings, which `--strict` makes errors.\n";

std::string values(const KeyRule& rule) {
  switch (rule.rule) {
    case ValueRule::choice:
      return join(choices_of(rule), ", ");
    case ValueRule::boolean:
      return "true, false";
    case ValueRule::number:
      return "whole number";
    case ValueRule::duration:
      return "seconds, 30m, 2h, HH:MM:SS, D-HH:MM:SS";
    case ValueRule::names: {
      auto choices = choices_of(rule);
      return choices.empty() ? "list of names" : fmt::format("list of: {}", join(choices, ", "));
    }
    case ValueRule::identifier:
    case ValueRule::name:
      return "name";
    case ValueRule::expression:
      return "true, false, expression";
    case ValueRule::text:
      break;
  }
  return "text";
}

// Escapes bars, which a table cell cannot hold.
std::string cell(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string in_code(const char* text) {
  return *text == '\0' ? std::string() : fmt::format("`{}`", text);
}

// "step", or with the parent if several elements share the name: "use (in step)".
std::string heading(const ElementRule& rule) {
  for (const ElementRule& other : element_rules()) {
    if (&other == &rule || std::strcmp(other.name, rule.name) != 0) continue;
    return fmt::format("{} (in {})", rule.name, rule.parents);
  }
  return rule.name;
}

std::string parents(const ElementRule& rule) {
  std::vector<std::string> names;
  if (*rule.parents == '\0') return {};
  for (const std::string& id : split_strip(rule.parents, " ")) {
    names.push_back(id == "jube" ? "top level" : fmt::format("`{}`", find_element(id)->name));
  }
  return fmt::format("In: {}. ", join(names, ", "));
}

std::string children(const ElementRule& rule) {
  std::vector<std::string> names;
  for (const ElementRule& other : element_rules()) {
    if (find_child(rule.id, other.name) == &other) names.push_back(fmt::format("`{}`", other.name));
  }
  return names.empty() ? std::string() : fmt::format("Holds: {}. ", join(names, ", "));
}

std::string section(const ElementRule& rule) {
  std::string text = fmt::format("\n## {}{}\n\n{}\n", heading(rule),
                                 rule.language == Language::tally ? " **T**" : "", rule.doc);
  std::string around = parents(rule) + children(rule);
  if (rule.free_keys) around += "Keys are free. ";
  if (!around.empty()) text += fmt::format("\n{}\n", strip(around));
  std::string rows;
  for (const KeyRule& key : key_rules()) {
    if (std::strcmp(key.element, rule.id) != 0) continue;
    rows += fmt::format(
        "| `{}`{}{} | {} | {} | {} |\n", key.key, key.required ? " (required)" : "",
        key.language == Language::tally && rule.language == Language::jube ? " **T**" : "",
        cell(values(key)), cell(in_code(key.otherwise)), cell(key.doc));
  }
  if (rows.empty()) return text;
  text += "\n| key | values | otherwise | meaning |\n|---|---|---|---|\n";
  return text + rows;
}

// The keys that may stand at the top level of a file in the short form.
std::string short_form_section() {
  std::string text =
      "\n## The short form **T**\n\n"
      "A file with `run` and without `step` needs no sets, steps, analyser and result: they are "
      "made "
      "of the\nkeys below. `tally show FILE` prints the long form that a file stands for. All "
      "other "
      "keys may stand\nbeside these; what is there in the long form is not made. Without `name` "
      "the\nworkflow is called as its file is, and without `outpath` the runs are in `NAME_run`. "
      "The [tutorial](tutorial.md) begins with an example.\n\n"
      "| key | values | meaning |\n|---|---|---|\n";
  for (const ShortKey& key : short_keys())
    text += fmt::format("| `{}` | {} | {} |\n", key.key, cell(key.values), cell(key.doc));
  std::vector<std::string> run_keys;
  for (const std::string& key : known_names("step")) {
    const std::string shown = fmt::format("`{}`", key);
    if (is_run_key(key) && std::find(run_keys.begin(), run_keys.end(), shown) == run_keys.end())
      run_keys.push_back(shown);
  }
  return text + fmt::format("\nKeys of the run's `step` may stand beside `run`: {}.\n",
                            join(run_keys, ", "));
}

}  // namespace

std::string reference_markdown() {
  std::string text = kHead + short_form_section();
  for (const ElementRule& rule : element_rules()) text += section(rule);
  return text + kReferenceExamples;
}

}  // namespace tally
