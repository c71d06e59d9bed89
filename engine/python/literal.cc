#include "engine/python/literal.h"

#include <optional>

#include "engine/python/number.h"

namespace tally {

std::string python_string(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\\' || c == '\'') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\r') {
      quoted += "\\r";
    } else if (c == '\0') {
      quoted += "\\x00";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string literal(const Value& value) {
  if (value.none()) return "None";
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) {
    std::string number = value.str();
    bool plain = number.find_first_not_of("0123456789.+-e") == std::string::npos;
    return plain ? number : "float('" + number + "')";
  }
  return python_string(*text);
}

Value typed(const std::string& text) {
  if (text == "None") return {};
  bool whole = !text.empty() &&
               text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0) == std::string::npos &&
               text != "-";
  if (whole) {
    if (auto integer = make_value(text, ValueType::integer, true)) return *std::move(integer);
  }
  std::optional<double> number = python_float(text);
  if (number && !whole) return {*number};
  return {text};
}

bool truth(const std::string& text) {
  return !(text == "False" || text == "0" || text == "0.0" || text == "None" || text.empty() ||
           text == "[]" || text == "()" || text == "{}");
}

}  // namespace tally
