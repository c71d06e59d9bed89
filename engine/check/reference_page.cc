#include "engine/check/reference_page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <map>

#include "engine/base/text.h"
#include "engine/read/schema.h"
#include "engine/read/short_form.h"

namespace tally {
namespace {

constexpr const char* kHead =
    R"(# Reference of the workflow language

Every element and every key that Tally reads. This page is made from the table in
`engine/read/schema.cc` that the checker works with; a test keeps it current.

- In YAML an element is a key of the one that holds it: one mapping, or a list of them; where an
  element has no keys but its text, the text alone will do. `_` is the element's own text. In XML an
  element is a tag and a key an attribute; `_` is what stands between the tags.
- A YAML file with one benchmark has the keys of `benchmark` at its top level.
- Every element may have a key `tag`: an expression of tags joined by `^` `!` `+` `|`, binding in
  that order; the element is left out when it does not hold.
- In paths `~` and the environment's `$NAME`s stand for what they are in a shell, once the parameters
  are put in.
- **T** marks what Tally adds to JUBE's language. In a file that uses any of it, an unknown key is an
  error, a plain value is the text as it is written ([below](#plain-values)), a parameter's values may
  be a list (`_: [1, 2]`), and a `${name}` in a command that no parameter, command or environment has
  is an error (`$$name` leaves it to the shell). In plain JUBE language all this is as in JUBE, with
  warnings, which `--strict` makes errors.
)";

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
    if (is_run_key(key) && !contains(run_keys, shown)) run_keys.push_back(shown);
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

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTag =
    "An expression of tags joined by ^ ! + |. The element is left out when it does not hold.";

// A definition that several places have in common is made once. It may not have an element's id as
// its name.
Json defined(const std::string& name) {
  return {{"$ref", "#/definitions/" + name}};
}
constexpr const char* kScalar = ".scalar";
constexpr const char* kTagKey = ".tag";

Json any_of(std::vector<Json> variants) {
  if (variants.size() == 1) return variants.front();
  return {{"anyOf", std::move(variants)}};
}

Json scalar() {
  return defined(kScalar);
}

Json value_of(const KeyRule& rule) {
  switch (rule.rule) {
    case ValueRule::choice:
      return {{"enum", choices_of(rule)}};
    case ValueRule::boolean:
      return {{"type", {"boolean", "string"}}};
    case ValueRule::number:
      return any_of(
          {{{"type", "integer"}}, {{"type", "string"}, {"pattern", "^\\s*[-+]?[0-9]+\\s*$|\\$"}}});
    case ValueRule::names: {
      Json names = scalar();
      return any_of({names, {{"type", "array"}, {"items", names}}});
    }
    case ValueRule::text:
    case ValueRule::name:
    case ValueRule::identifier:
    case ValueRule::duration:
    case ValueRule::expression:
      break;
  }
  return scalar();
}

Json documented(const char* doc, const char* otherwise, const Json& value) {
  Json out;
  out["description"] =
      *otherwise == '\0' ? std::string(doc) : std::string(doc) + " Default: " + otherwise + ".";
  out.update(value);
  return out;
}

// The keys and elements of a mapping, except the text "_".
void add_properties(const char* id, Json* properties, std::vector<std::string>* required) {
  for (const KeyRule& key : key_rules()) {
    if (std::strcmp(key.element, id) != 0 || std::strcmp(key.key, "_") == 0) continue;
    Json value = value_of(key);
    if (takes_points(id, key.key)) value = any_of({value, {{"type", "array"}, {"items", value}}});
    (*properties)[key.key] = documented(key.doc, key.otherwise, value);
    if (key.required) required->emplace_back(key.key);
  }
  for (const ElementRule& child : element_rules()) {
    if (find_child(id, child.name) != &child) continue;
    (*properties)[child.name] = defined(child.id);
    if (std::strcmp(child.name, "analyser") == 0) (*properties)["analyzer"] = defined(child.id);
  }
}

Json mapping(const ElementRule& rule, const KeyRule* text) {
  Json properties = Json::object();
  std::vector<std::string> required;
  add_properties(rule.id, &properties, &required);
  if (text != nullptr) {
    const Json value = value_of(*text);
    properties["_"] = documented(text->doc, text->otherwise,
                                 any_of({value, {{"type", "array"}, {"items", value}}}));
  }
  // Every element may have a tag, except one whose own elements are called so.
  if (!properties.contains("tag")) properties["tag"] = defined(kTagKey);
  Json out = {{"type", "object"}, {"properties", properties}};
  if (!required.empty()) out["required"] = required;
  out["additionalProperties"] = rule.free_keys ? scalar() : Json(false);
  return out;
}

// One element: a mapping, or its text alone.
Json single(const ElementRule& rule) {
  const KeyRule* text = find_key(rule.id, "_");
  std::vector<Json> one = {mapping(rule, text)};
  if (text != nullptr) one.push_back(value_of(*text));
  // `include-path: DIR` stands for `include-path: {path: DIR}`.
  if (std::strcmp(rule.id, "include-path") == 0) one.push_back(scalar());
  return any_of(one);
}

// One element, or a list of them, which may hold one further list.
Json one_or_more(const ElementRule& rule) {
  const Json one = defined(std::string(rule.id) + ".single");
  const Json items = any_of({one, {{"type", "array"}, {"items", one}}});
  return documented(rule.doc, "", any_of({one, {{"type", "array"}, {"items", items}}}));
}

// The mapping of an element without its name, which stands before the colon, and with the keys of
// another element and further texts.
Json unnamed(const char* id, const char* beside, const std::vector<const char*>& texts) {
  Json properties = Json::object();
  std::vector<std::string> required;
  if (beside != nullptr) add_properties(beside, &properties, &required);
  add_properties(id, &properties, &required);
  for (const char* gone : {"name", "kind"}) properties.erase(gone);
  for (const char* text : texts) properties[text] = scalar();
  if (!properties.contains("tag")) properties["tag"] = defined(kTagKey);
  if (find_key(id, "_") != nullptr)
    properties["_"] = any_of({scalar(), {{"type", "array"}, {"items", scalar()}}});
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

// One, or a list that tags choose from.
Json chosen(const Json& one, std::vector<Json> others) {
  others.push_back(one);
  others.push_back({{"type", "array"}, {"items", one}});
  return any_of(std::move(others));
}

// The keys of the short form.
void add_short_form(Json* properties) {
  const Json list = {{"type", "array"}, {"items", scalar()}};
  const auto named = [](const Json& value) {
    return Json{{"type", "object"}, {"additionalProperties", value}};
  };
  const std::map<std::string_view, Json> values = {
      {"parameters", named(chosen(defined(".parameter"), {scalar(), list}))},
      {"where", defined("where")},
      {"zip", defined("zip")},
      {"build", chosen(defined(".step"), {scalar(), list})},
      {"run", chosen(defined(".step"), {scalar()})},
      {"on", defined("step.platform")},
      {"files", any_of({scalar(), list})},
      {"metrics", named(chosen(defined(".metric"), {scalar()}))},
      {"rows", any_of({scalar(), list})},
      {"chart", defined("chart")},
  };
  for (const ShortKey& key : short_keys())
    (*properties)[key.key] = documented(key.doc, "", values.at(key.key));
  Json of_step = Json::object();
  std::vector<std::string> required;
  add_properties("step", &of_step, &required);
  for (const auto& [key, value] : of_step.items())
    if (is_run_key(key)) (*properties)[key] = value;
}

}  // namespace

std::string workflow_json_schema() {
  Json definitions = Json::object();
  for (const ElementRule& rule : element_rules()) {
    if (std::strcmp(rule.id, "jube") == 0) continue;
    definitions[rule.id] = one_or_more(rule);
    definitions[std::string(rule.id) + ".single"] = single(rule);
  }
  definitions[".parameter"] = unnamed("parameter", nullptr, {});
  definitions[".step"] = unnamed("step", nullptr, {});
  definitions[".metric"] = unnamed("pattern", "column", {"file"});
  // Any plain value. An empty one is null in YAML.
  definitions[kScalar] = {{"type", {"string", "number", "boolean", "null"}}};
  definitions[kTagKey] = documented(kTag, "", scalar());
  // A file with one benchmark has the benchmark's keys at its top level.
  Json properties = Json::object();
  std::vector<std::string> required;
  add_properties("benchmark", &properties, &required);
  add_properties("jube", &properties, &required);
  add_short_form(&properties);
  const Json top = {
      {"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "Tally workflow"},
                 {"description",
                  "Workflow files in YAML. Made by `tally reference --json-schema` from the table "
                  "that the checker works with."}};
  schema["anyOf"] = {top, {{"type", "array"}, {"items", {{"$ref", "#/definitions/benchmark"}}}}};
  schema["definitions"] = definitions;
  return schema.dump(1) + "\n";
}

}  // namespace tally
