// The language as one table: every element, every key, its allowed values, and one line of
// documentation. The readers use it to know which keys of a YAML mapping are elements. check/ uses
// it to know all valid names. The reference page is printed from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tally {

// The language of an element or a key: JUBE's, or an addition of Tally.
enum class Language { jube, tally };

enum class ValueRule {
  text,        // anything
  name,        // a name without white space
  identifier,  // letters, digits, underscore; no digit first
  names,       // a comma-separated list of names; a YAML list of scalars is joined to one
  boolean,     // true or false (also yes, no, on, off, in any case)
  number,      // a whole number, or a text with $parameters
  choice,      // one of KeyRule::choices
  duration,    // seconds, or 10m, 2h, 1d, or [DD-]HH:MM:SS, or a text with $parameters
  expression,  // true, false or an expression with $parameters
};

struct KeyRule {
  const char* element;  // ElementRule::id
  const char* key;      // "_" is the element's own text
  ValueRule rule;
  const char* choices;  // "a|b|c" for ValueRule::choice
  Language language;
  bool required;
  const char* otherwise;  // the value if the key is left out, as printed in the reference
  const char* doc;
};

struct ElementRule {
  const char* id;       // unique: "step.use" and "result.use" are two elements called "use"
  const char* name;     // as written in the file
  const char* parents;  // ids, separated by blanks
  Language language;
  bool free_keys;  // any key is allowed: environment variables, scheduler options
  const char* doc;
};

const std::vector<ElementRule>& element_rules();
const std::vector<KeyRule>& key_rules();

// The first spelling of an element name for which JUBE has two: "analyser" for "analyzer".
std::string element_name(std::string_view name);

// The element called `name` inside the element `parent` (an id), or null.
const ElementRule* find_child(std::string_view parent, std::string_view name);
const ElementRule* find_element(std::string_view id);
const KeyRule* find_key(std::string_view element, std::string_view key);
// Whether a YAML list under the key is a list of points, each with one of the values.
bool takes_points(std::string_view element, std::string_view key);
// The names of all keys and elements allowed in `element`, for "did you mean".
std::vector<std::string> known_names(std::string_view element);
// The choices of a rule, split.
std::vector<std::string> choices_of(const KeyRule& rule);

}  // namespace tally
