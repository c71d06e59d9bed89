#include "engine/check/parse_values.h"

#include <algorithm>
#include <string>

#include "engine/base/ascii.h"
#include "engine/base/duration.h"
#include "engine/base/text.h"

namespace tally {

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
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_name_char(c) || static_cast<unsigned char>(c) >= 0x80;
  });
}

}  // namespace tally
