#include "engine/check/elements.h"

namespace tally {

Text stripped(const Text& text) {
  return {std::string(strip(text.value)), text.mark};
}

Text text_of(const Element& element) {
  Text text = stripped(element.text);
  if (!text.mark.known()) text.mark = element.mark;
  return text;
}

Text attribute_text(const Element& element, const std::string& name, const std::string& otherwise) {
  const Attribute* found = element.find(name);
  Text text = found ? stripped(found->value) : Text{};
  if (text.value.empty()) text.value = otherwise;
  return text;
}

std::vector<Text> split_text(const Text& text) {
  std::vector<Text> parts;
  for (std::string& part : split_strip(text.value, ",")) {
    if (!part.empty()) parts.push_back({std::move(part), text.mark});
  }
  return parts;
}

ValueType value_type(const Element& element) {
  std::string type(strip(element.get("type")));
  if (type == "int") return ValueType::integer;
  if (type == "float") return ValueType::floating;
  return ValueType::string;
}

}  // namespace tally
