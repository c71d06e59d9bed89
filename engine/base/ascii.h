// Classes of ASCII characters. Unlike <cctype>, they do not ask the locale and take any char.
#pragma once

namespace tally {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
// A shell's or Python's name begins with the first of these and goes on with the second.
constexpr bool is_name_start(char c) {
  return is_letter(c) || c == '_';
}
constexpr bool is_name_char(char c) {
  return is_name_start(c) || is_digit(c);
}

}  // namespace tally
