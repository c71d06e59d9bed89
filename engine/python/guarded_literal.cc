#include "engine/python/guarded_literal.h"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "engine/base/text.h"
#include "engine/python/value.h"

namespace tally {

bool says_flag(std::string_view text) {
  static const std::set<std::string> flags = {"true", "false", "yes", "no", "on", "off"};
  return flags.contains(to_lower(text));
}

std::string guarded_literal(std::string_view name, std::string_view text, bool numbers) {
  const std::string plain = python_string(text);
  if (says_flag(text)) return fmt::format("__text__({}, {})", plain, python_string(name));
  const bool digits = text.find_first_of("0123456789") != std::string_view::npos;
  const std::optional<double> number = numbers && digits ? python_float(text) : std::nullopt;
  if (!number) return plain;
  std::optional<Value> value;
  if (text.find_first_of(".eE") == std::string_view::npos)
    value = make_value(text, ValueType::integer, true);
  if (!value) value = Value{*number};
  return fmt::format("__text__({}, {}, {})", plain, python_string(name), literal(*value));
}

}  // namespace tally
