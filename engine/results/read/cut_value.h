// Finds values that a pattern took out of the middle of a number or a word. Private to results/.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/python/python_regex.h"

namespace tally {

// Whether a value ends or begins in the middle of a number or of a word: "-0.76026" of
// "-0.76026D+02", "1" of "1,234.5", "0" of "0x1F", "3.14" of "3.14.15", "5" of "12.5", "76" of
// "-76", "12" of "0:12", "H" of "H100". Letters behind a number are its unit (5ms, 1.5GB, 3x) and
// before it a name (H100, rank3), unless a further number follows in the same word (1m30s). A list
// (1,2,3), a range (0-15) and a fraction (5/100) are several numbers. A side that the pattern names
// is not looked at. `value` is a part of `text`.
bool is_cut(std::string_view text, std::string_view value, const GroupEdges& edges);

// The characters that is_cut() asks for.
constexpr std::array<bool, 256> characters_of_values() {
  std::array<bool, 256> beside{};
  for (size_t c = 0; c < beside.size(); ++c) {
    beside[c] = c >= 128 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                (c >= 'A' && c <= 'Z') || c == '_';
  }
  for (const char c : std::string_view(".,'+-:*^#\x1b"))
    beside[static_cast<unsigned char>(c)] = true;
  return beside;
}

// Whether " x 10^3" or " ^ 3" may stand there.
inline bool may_be_times(std::string_view after) {
  return after.size() == 3 && after[0] == ' ' &&
         (after[1] == 'x' || after[1] == 'X' || after[1] == '*' || after[1] == '^' ||
          static_cast<unsigned char>(after[1]) >= 128);
}
// Whether "2 ^ " may.
inline bool may_be_power(std::string_view before) {
  return before.size() == 2 && before[1] == ' ' && (before[0] == '*' || before[0] == '^');
}

// Whether a character beside the value may belong to it: nearly always a space stands there. Saves
// is_cut() for most of a file's millions of values.
inline bool may_be_cut(std::string_view text, std::string_view value) {
  static constexpr std::array<bool, 256> beside = characters_of_values();
  const char* const end = value.data() + value.size();
  return (value.data() != text.data() && beside[static_cast<unsigned char>(value.data()[-1])]) ||
         (end != text.data() + text.size() && beside[static_cast<unsigned char>(*end)]) ||
         may_be_times(text.substr(static_cast<size_t>(end - text.data()), 3)) ||
         (value.data() - text.data() > 1 && may_be_power({value.data() - 2, 2}));
}

// The value with what stands around it up to the next spaces, for messages.
std::string around(std::string_view text, std::string_view value);

// A number with an exponent of Fortran's ("-0.76026D+02", "1.0-100") as Python writes it.
// Another text has none.
std::optional<std::string> without_fortran(std::string_view number);

}  // namespace tally
