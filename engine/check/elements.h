// Reading an element's parts. Internal to check/.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/text.h"
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

}  // namespace tally
