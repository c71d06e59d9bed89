#include "engine/check/parse_values.h"

#include <algorithm>

#include "engine/base/text.h"

namespace tally {

namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_number(std::string_view text) {
  size_t point = text.find('.');
  if (point == std::string_view::npos) return all_digits(text);
  return all_digits(text.substr(0, point)) && all_digits(text.substr(point + 1));
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
  text = strip(text);
  if (has_dollar(text) || is_number(text)) return true;
  if (text.empty()) return false;
  if (std::string_view("smhd").find(text.back()) != std::string_view::npos) {
    return is_number(text.substr(0, text.size() - 1));
  }
  size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    if (!all_digits(text.substr(0, dash))) return false;
    text.remove_prefix(dash + 1);
  }
  auto parts = split_strip(text, ":");
  return parts.size() <= 3 && (parts.size() > 1 || dash != std::string_view::npos) &&
         std::all_of(parts.begin(), parts.end(), all_digits);
}

bool is_identifier(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
  });
}

}  // namespace tally
