#include "engine/check/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "engine/base/duration.h"
#include "engine/base/text.h"
#include "engine/python/value.h"
#include "engine/read/schema.h"

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

std::vector<std::pair<Text, Text>> all_attributes(const Element& element) {
  std::vector<std::pair<Text, Text>> all;
  for (const Attribute& a : element.attributes) {
    if (a.name.value != "tag") all.emplace_back(a.name, a.value);
  }
  return all;
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

namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

bool parse_boolean(std::string_view text, bool* value) {
  std::string lower = to_lower(strip(text));
  for (const char* word : {"true", "yes", "on", "1"}) {
    if (lower == word) return *value = true;
  }
  for (const char* word : {"false", "no", "off", "0"}) {
    if (lower == word) {
      *value = false;
      return true;
    }
  }
  return false;
}

bool boolean_or(std::string_view text, bool otherwise) {
  bool value = otherwise;
  return parse_boolean(text, &value) ? value : otherwise;
}

bool is_number_or_parameter(std::string_view text) {
  text = strip(text);
  return has_dollar(text) || (all_digits(text) && text.size() < 10);
}

bool is_duration_or_parameter(std::string_view text) {
  return has_dollar(text) || parse_duration(std::string(text)).has_value();
}

bool is_identifier(std::string_view text) {
  if (text.empty() || is_digit(text[0])) return false;
  return std::ranges::all_of(
      text, [](char c) { return is_name_char(c) || static_cast<unsigned char>(c) >= 0x80; });
}

namespace {

class CoreValues {
 public:
  CoreValues(const std::vector<CoreValue>& values, PlainText text, Diagnostics& diagnostics)
      : text_(text), diagnostics_(diagnostics) {
    for (const CoreValue& value : values) values_[key(value.mark)] = &value;
  }

  void replace(Element* element, const ElementRule* rule) {
    for (Attribute& a : element->attributes) {
      replace(&a.name, ValueRule::text, false);
      const KeyRule* known = rule ? find_key(rule->id, a.name.value) : nullptr;
      replace(&a.value, known ? known->rule : ValueRule::text, true);
    }
    const KeyRule* own = rule ? find_key(rule->id, "_") : nullptr;
    const std::string type = element->get("type");
    if ((type == "int" || type == "float") && !python_float(written(element->text))) {
      element->text.value = numbers_of(element->text);
    } else {
      replace(&element->text, own ? own->rule : ValueRule::text, true);
    }
    for (Element& child : element->children) {
      replace(&child, rule ? find_child(rule->id, child.name) : nullptr);
    }
  }

 private:
  using Key = std::tuple<uint32_t, uint32_t, uint32_t>;
  static Key key(const Mark& mark) { return {mark.file, mark.line, mark.column}; }

  const std::string& written(const Text& text) const {
    const auto found = values_.find(key(text.mark));
    const bool changes = found != values_.end() && text.value == found->second->pyyaml;
    return changes ? found->second->written : text.value;
  }

  // The values of a parameter that is a number, which cannot have every text that is a number in
  // YAML (0x1F, .inf): what YAML reads there. A text that is none in YAML either stays as it is
  // written.
  std::string numbers_of(const Text& text) const {
    const auto found = values_.find(key(text.mark));
    if (found == values_.end() || text.value != found->second->pyyaml) return text.value;
    const std::string& own =
        text_ == PlainText::as_written ? found->second->written : found->second->core;
    const std::vector<std::string> read = split_strip(found->second->core, ",");
    std::vector<std::string> values = split_strip(own, ",");
    if (values.size() != read.size()) return found->second->core;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!python_float(values[i]) && python_float(read[i])) values[i] = read[i];
    }
    return join(values, ",");
  }

  void replace(Text* text, ValueRule rule, bool say) {
    const auto found = values_.find(key(text->mark));
    if (found == values_.end() || text->value != found->second->pyyaml) return;
    const CoreValue& value = *found->second;
    switch (rule) {
      case ValueRule::expression:  // `active: no` stays Python's False, as in PyYAML
        return;
      case ValueRule::boolean:
      case ValueRule::number:
      case ValueRule::duration:
        text->value = value.core;
        return;
      default:
        text->value = text_ == PlainText::as_written ? value.written : value.core;
    }
    if (!say || value.core == value.pyyaml) return;
    diagnostics_.remark(text->mark,
                        fmt::format("the value is '{}', as in YAML 1.2; in a file of plain JUBE "
                                    "language it is '{}'",
                                    text->value, value.pyyaml),
                        "quote it to have the text as it is written in both",
                        {"core value", text->value});
  }

  std::map<Key, const CoreValue*> values_;
  PlainText text_;
  Diagnostics& diagnostics_;
};

}  // namespace

void use_core_values(const Document& document, PlainText text, Element* root,
                     Diagnostics& diagnostics) {
  if (document.core_values.empty()) return;
  CoreValues(document.core_values, text, diagnostics).replace(root, find_element("jube"));
}

}  // namespace tally
