// Small text helpers that several stages use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

// Python's str.strip(): removes ASCII white space from both ends.
std::string_view strip(std::string_view text);
// Splits at every occurrence of `separator`. An empty separator gives {text}. Pieces are stripped,
// and empty pieces are kept.
std::vector<std::string> split_strip(std::string_view text, std::string_view separator);
// Replaces every run of white space by one blank and removes it at both ends.
std::string one_line(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// "1 row", "2 rows".
std::string counted(size_t count, const char* one, const char* several);
std::string first_line(const std::string& text);
bool starts_with(std::string_view text, std::string_view prefix);
template <class Range, class Value>
bool contains(const Range& range, const Value& value) {
  return std::find(range.begin(), range.end(), value) != range.end();
}
inline bool is_one_of(std::string_view characters, char c) {
  return characters.find(c) != std::string_view::npos;
}
// Whether a $name may stand in it.
inline bool has_dollar(std::string_view text) {
  return text.find('$') != std::string_view::npos;
}
// The whole number of 64 bits, with or without a sign, that `text` consists of.
std::optional<long long> whole_number(const std::string& text);
// Replaces every occurrence of `from`, which does nothing if it is empty.
void replace_all(std::string& text, std::string_view from, std::string_view to);
// The candidate nearest to `name` by edit distance, or "" when none is close enough.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);
// "did you mean 'x'?" for nearest(), or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);
// The number of single-character insertions, deletions, substitutions and swaps of neighbours that
// turn one text into the other (optimal string alignment). It counts bytes.
size_t edit_distance(std::string_view a, std::string_view b);
// An id as folders have it: 7 -> "000007".
std::string padded_id(int id);
// ASCII lower case.
std::string to_lower(std::string_view text);
// The number of bytes of the UTF-8 sequence at the start of `text`. It is 0 when the text is empty
// or not valid UTF-8 (overlong, a surrogate, beyond U+10FFFF, or truncated). `code_point` may be
// null.
size_t utf8_length(std::string_view text, uint32_t* code_point = nullptr);
// The number of code points in UTF-8 text: Python's len().
size_t code_points(std::string_view text);
// The text with references such as &amp; in place of the characters of it that `special` names.
std::string xml_escaped(std::string_view text, std::string_view special);
// Quotes a word for /bin/sh so that it arrives unchanged. A word that needs no quotes stays bare.
std::string shell_quote(std::string_view word);

// Puts a word in double quotes for the shell, so that $VARIABLES in it are still expanded. A job's
// environment is often built from variables that are set inside the job.
std::string double_quoted(std::string_view text);

// Appends `code` in UTF-8.
void append_utf8(uint32_t code, std::string& out);

// Outputs may hold any bytes, and patterns search characters. In text made of bytes, a byte that is
// not UTF-8 is a character of its own, which is no letter, no digit and no space: U+10FE80 for 0x80
// up to U+10FEFF for 0xFF, which Unicode leaves to private use. Where the bytes hold such a
// character, each of its bytes becomes one, so that bytes_of_text() gives back any bytes.

// The number of bytes of the character at the start of `bytes`. It is 0 if the first byte is not
// one in text. `bytes` is not empty.
size_t text_length(std::string_view bytes);
// Appends a byte of which text_length() is 0.
void append_byte_as_text(char byte, std::string& out);
std::string text_of_bytes(std::string_view bytes);
std::string bytes_of_text(std::string_view text);

// Classes of ASCII characters. Unlike <cctype>, they do not ask the locale and take any char.

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
// A shell's or Python's name begins with the first of these and goes on with the second.
constexpr bool is_name_start(char c) {
  return is_letter(c) || c == '_';
}
constexpr bool is_name_char(char c) {
  return is_name_start(c) || is_digit(c);
}

}  // namespace tally
