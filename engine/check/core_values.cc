#include "engine/check/core_values.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "engine/python/number.h"
#include "engine/read/schema.h"

namespace tally {

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
    ValueRule of_text = own ? own->rule : ValueRule::text;
    // A parameter that is a number cannot have every text that is a number in YAML: 0x1F, .inf.
    const std::string type = element->get("type");
    if ((type == "int" || type == "float") && !python_float(written(element->text)))
      of_text = ValueRule::number;
    replace(&element->text, of_text, true);
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
