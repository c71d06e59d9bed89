// Reading elements: their parts, and the values of their keys. Internal to check/.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/base/text.h"
#include "engine/check/check.h"
#include "engine/read/document.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The text without white space at both ends.
Text stripped(const Text& text);
// The element's own text, stripped. If it has none, the mark is the element's.
Text text_of(const Element& element);
// An attribute's value, stripped. It is `otherwise` if the attribute is empty or missing.
Text attribute_text(const Element& element, const std::string& name,
                    const std::string& otherwise = {});
// The parts of a comma-separated list, stripped, each with the list's mark. Empty parts are left
// out.
std::vector<Text> split_text(const Text& text);
// The attributes except `tag`, names and values.
std::vector<std::pair<Text, Text>> all_attributes(const Element& element);
ValueType value_type(const Element& element);

// The value for a word. It is `otherwise` for unknown words, which the schema check reports.
template <typename Enum>
Enum choice(const std::string& text, std::initializer_list<std::pair<const char*, Enum>> values,
            Enum otherwise) {
  std::string_view wanted = strip(text);
  for (const auto& [name, value] : values) {
    if (wanted == name) return value;
  }
  return otherwise;
}

// Reads true, yes, on, 1 or false, no, off, 0, in any case. Returns false for other texts.
bool parse_boolean(std::string_view text, bool* value);
bool boolean_or(std::string_view text, bool otherwise);

// True for a whole number of at least 0, and for a text with a $parameter, whose value is known
// later.
bool is_number_or_parameter(std::string_view text);

// True for a duration in seconds, as 90, 90s, 10m, 2h or 1d, or in Slurm's forms [DD-]HH:MM:SS and
// MM:SS. Also true for a text with a $parameter.
bool is_duration_or_parameter(std::string_view text);

// True for letters, digits and underscores without a leading digit. Letters may be of any script,
// as in Python's identifiers.
bool is_identifier(std::string_view text);

// Some values have one meaning in YAML 1.2 and another in JUBE's PyYAML. In `root`, which is the
// document's own root or a copy of it, keys that take a text get the text as it is written, and
// keys that take a number, a boolean or a time get the YAML 1.2 meaning. A remark is added where
// the meanings differ.
void use_core_values(const Document& document, PlainText text, Element* root,
                     Diagnostics& diagnostics);

}  // namespace tally
