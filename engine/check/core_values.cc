#include "engine/check/core_values.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "engine/read/schema.h"

namespace tally {

namespace {

class CoreValues {
 public:
  CoreValues(const std::vector<CoreValue>& values, Diagnostics& diagnostics)
      : diagnostics_(diagnostics) {
    for (const CoreValue& value : values) values_[key(value.mark)] = &value;
  }

  void replace(Element* element, const ElementRule* rule) {
    for (Attribute& a : element->attributes) {
      const KeyRule* known = rule ? find_key(rule->id, a.name.value) : nullptr;
      // `active: no` stays Python's False, as in PyYAML.
      if (known && known->rule == ValueRule::expression) continue;
      // For a boolean, a number or a time, both spellings have the same meaning.
      const bool typed =
          known && (known->rule == ValueRule::boolean || known->rule == ValueRule::number ||
                    known->rule == ValueRule::duration);
      replace(&a.value, !typed);
    }
    replace(&element->text, true);
    for (Element& child : element->children) {
      replace(&child, rule ? find_child(rule->id, child.name) : nullptr);
    }
  }

 private:
  using Key = std::tuple<uint32_t, uint32_t, uint32_t>;
  static Key key(const Mark& mark) { return {mark.file, mark.line, mark.column}; }

  void replace(Text* text, bool say) {
    const auto found = values_.find(key(text->mark));
    if (found == values_.end() || text->value != found->second->pyyaml) return;
    text->value = found->second->core;
    if (!say) return;
    diagnostics_.remark(text->mark,
                        fmt::format("the value is '{}', as in YAML 1.2; in a file of plain JUBE "
                                    "language it is '{}'",
                                    text->value, found->second->pyyaml),
                        "quote it to have the text as it is written in both",
                        {"core value", text->value});
  }

  std::map<Key, const CoreValue*> values_;
  Diagnostics& diagnostics_;
};

}  // namespace

void use_core_values(const Document& document, Element* root, Diagnostics& diagnostics) {
  if (document.core_values.empty()) return;
  CoreValues(document.core_values, diagnostics).replace(root, find_element("jube"));
}

}  // namespace tally
