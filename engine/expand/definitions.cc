#include "engine/expand/definitions.h"

#include <cmath>

#include "engine/base/text.h"
#include "engine/expand/point.h"
#include "engine/expand/substitute.h"
#include "engine/python/value.h"
#include "engine/workflow/allowed.h"

namespace tally {

TextId TextPool::intern(std::string_view text) {
  const auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  const auto id = static_cast<TextId>(texts_.size());
  texts_.emplace_back(text);
  // The key is a view of the stored text. That is safe because a deque never moves its elements.
  ids_.emplace(texts_.back(), id);
  return id;
}

const Binding* find_binding(const Point& point, const TextPool& pool, std::string_view name) {
  const std::string_view other = without_platform_prefix(name);
  const Binding* found = nullptr;
  for (const Binding& binding : point.bindings) {
    const std::string& own = pool[binding.name];
    if (own == name) return &binding;
    if (!other.empty() && own == other) found = &binding;
  }
  return found;
}

uint32_t Definitions::number(const ParameterSet& set, const Parameter& parameter) {
  const auto [entry, added] =
      numbers_.emplace(&parameter, static_cast<uint32_t>(definitions_.size()));
  if (!added) return entry->second;
  Definition definition;
  definition.parameter = &parameter;
  definition.set = &set;
  definition.name = pool_.intern(parameter.name.value);
  definition.text = pool_.intern(strip(parameter.value.value));
  definition.checked = parameter.type != ValueType::string || !parameter.allowed.value.empty();
  const bool text = parameter.mode == Mode::text;
  if (text && pieces(definition.text, parameter.separator).size() > 1) {
    definition.start = Progress::split_raw;
  } else if (!text || has_dollar(pool_[definition.text])) {
    definition.start = Progress::raw;
  }
  definitions_.push_back(definition);
  return entry->second;
}

Binding Definitions::fresh(uint32_t number) const {
  const Definition& d = definitions_[number];
  return {d.name, d.text, Binding::no_index, with_progress(number, d.start)};
}

void Definitions::restart(Binding& binding) {
  const uint32_t number = definition_number(binding);
  const Definition& definition = definitions_[number];
  binding.value = definition.text;
  if (definition.start == Progress::split_raw && binding.index != Binding::no_index) {
    const std::vector<TextId>& all = pieces(definition.text, definition.parameter->separator);
    if (binding.index < all.size()) binding.value = all[binding.index];
  }
  const bool constant =
      definition.parameter->mode == Mode::text && !has_dollar(pool_[binding.value]);
  binding.definition = with_progress(number, constant ? Progress::closed : Progress::raw);
}

TextId Definitions::piece_again(const Binding& binding, TextId text) {
  const Definition& definition = of(binding);
  const std::string& separator = definition.parameter->separator;
  // restart() has taken the piece of a list of texts.
  const bool one_value =
      binding.index == Binding::no_index || definition.start == Progress::split_raw;
  if (one_value || separator.empty()) return text;
  const std::vector<TextId>& all = pieces(text, separator);
  return binding.index < all.size() ? all[binding.index] : text;
}

const std::vector<TextId>& Definitions::pieces(TextId text, const std::string& separator) {
  const auto [entry, added] = pieces_.try_emplace({text, separator});
  if (added) {
    for (const std::string& piece : split_strip(pool_[text], separator)) {
      entry->second.push_back(pool_.intern(piece));
    }
  }
  return entry->second;
}

const std::vector<TextId>& Definitions::dollar_names(TextId text) {
  const auto [entry, added] = dollar_names_.try_emplace(text);
  if (added) {
    for (const std::string& name : tally::dollar_names(pool_[text])) {
      entry->second.push_back(pool_.intern(name));
    }
  }
  return entry->second;
}

void Definitions::close(Binding& binding, TextId value, bool literal) {
  binding.value = value;
  const uint32_t number = definition_number(binding);
  binding.definition = with_progress(number, Progress::closed);
  if (literal || definitions_[number].parameter->mode != Mode::text) return;
  if (!has_dollar(pool_[value]) || dollar_names(value).empty()) return;
  binding.definition |= unresolved_bit;
}

namespace {

std::string type_error(const Parameter& parameter, const std::string& value,
                       bool fractions_are_kept) {
  if (parameter.type == ValueType::string) return {};
  const std::optional<double> number = python_float(value);
  const bool integer = parameter.type == ValueType::integer;
  const bool fits = !integer || (std::isfinite(number.value_or(0)) &&
                                 (!fractions_are_kept || std::trunc(number.value_or(0)) == number));
  if (number && fits) return {};
  return '"' + value + "\" from \"" + parameter.name.value + "\" cannot be represented as a \"" +
         (integer ? "int" : "float") + '"';
}

}  // namespace

std::string value_error(const Parameter& parameter, const std::string& value,
                        bool fractions_are_kept) {
  std::string error = type_error(parameter, value, fractions_are_kept);
  if (!error.empty() || parameter.allowed.value.empty()) return error;
  const std::string needed = has_to_be(parameter.allowed.value, value);
  if (needed.empty()) return {};
  return "parameter '" + parameter.name.value + "' has to be " + needed + ", not '" + value + "'";
}

}  // namespace tally
