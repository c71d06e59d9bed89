#include "engine/results/read/cut_value.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/base/text.h"

namespace tally {
namespace {

constexpr std::string_view kNoBreakSpace = "\xc2\xa0";
constexpr std::string_view kNarrowSpace = "\xe2\x80\xaf";
constexpr std::string_view kThinSpace = "\xe2\x80\x89";
constexpr std::string_view kTimes = "\xc3\x97";
constexpr std::string_view kMiddleDot = "\xc2\xb7";
constexpr std::string_view kDotOperator = "\xe2\x8b\x85";
constexpr std::string_view kBullet = "\xe2\x88\x99";  // as an operator
constexpr std::string_view kQuote = "\xe2\x80\x99";
constexpr std::string_view kApostrophe = "\xca\xbc";
// Between groups of digits, of some locales and languages.
constexpr std::array<std::string_view, 8> kBetweenGroups = {
    ",", "_", "'", kNoBreakSpace, kNarrowSpace, kThinSpace, kQuote, kApostrophe};
constexpr std::string_view kMinus = "\xe2\x88\x92";
constexpr std::string_view kHyphen = "\xe2\x80\x91";  // at which no line ends
constexpr std::string_view kDash = "\xe2\x80\x93";
constexpr std::string_view kExponents = "eEdDqQ";

bool is_sign(char c) {
  return c == '+' || c == '-';
}
// The bytes of the sign that the text begins with: in print, a minus sign of its own or a dash may
// stand for that of a keyboard. 0: there is none.
size_t sign_length(std::string_view text) {
  if (!text.empty() && is_sign(text.front())) return 1;
  for (const std::string_view minus : {kMinus, kHyphen, kDash}) {
    if (text.substr(0, minus.size()) == minus) return minus.size();
  }
  return 0;
}
bool is_in(std::string_view list, char c) {
  return c != '\0' && list.find(c) != std::string_view::npos;
}

// The character at an index. NUL beyond the end.
char at(std::string_view text, size_t index) {
  return index < text.size() ? text[index] : '\0';
}
// The same, counted from the end: 0 is the last one.
char from_end(std::string_view text, size_t index) {
  return index < text.size() ? text[text.size() - 1 - index] : '\0';
}
size_t digits(std::string_view text, size_t from = 0) {
  size_t end = from;
  while (is_digit(at(text, end))) ++end;
  return end - from;
}
size_t digits_from_end(std::string_view text, size_t from = 0) {
  size_t end = from;
  while (is_digit(from_end(text, end))) ++end;
  return end - from;
}
bool begins(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}
bool ends(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string_view without_sign(std::string_view number) {
  return number.substr(number.empty() || !is_sign(number.front()) ? 0 : 1);
}
bool is_whole(std::string_view number) {
  const std::string_view plain = without_sign(number);
  return !plain.empty() && digits(plain) == plain.size();
}
bool is_zero(std::string_view number) {
  return without_sign(number) == "0";
}

// Digits and points, perhaps with a sign and an exponent.
bool is_number(std::string_view value) {
  const std::string_view plain = without_sign(value);
  size_t end = 0;
  while (is_digit(at(plain, end)) || at(plain, end) == '.') ++end;
  if (end == 0 || (end == 1 && plain.front() == '.')) return false;
  if (end == plain.size()) return true;
  if (!is_in(kExponents, plain[end])) return false;
  if (is_sign(at(plain, ++end))) ++end;
  return end < plain.size() && end + digits(plain, end) == plain.size();
}

// "e+02", "D0", and an "e" without digits, but not a unit ("d", "eV") or a name ("d3x").
bool is_exponent(std::string_view after) {
  const size_t sign = sign_length(after.substr(1));
  const bool has_sign = sign > 0;
  const size_t begin = 1 + sign;
  const size_t end = begin + digits(after, begin);
  if (end > begin) return has_sign || !is_letter(at(after, end));
  const bool bare = after.front() == 'e' || after.front() == 'E';
  return bare && !is_name_char(at(after, begin)) &&
         static_cast<unsigned char>(at(after, begin)) < 128;
}

// A superscript digit or sign, or a fraction such as a half.
bool is_raised(std::string_view text) {
  const bool latin =
      begins(text, "\xc2\xb2") || begins(text, "\xc2\xb3") || begins(text, "\xc2\xb9");
  return latin || begins(text, "\xe2\x81\xb0") ||
         (begins(text, "\xe2\x81") && at(text, 2) >= '\xb4' && at(text, 2) <= '\xbb');
}
bool is_fraction(std::string_view text) {
  return begins(text, "\xc2") && at(text, 1) >= '\xbc' && at(text, 1) <= '\xbe';
}

std::string_view without_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}
std::string_view without_blanks_at_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

// "x10^3", "*10**3", " x 10^3"
bool is_times_power_of_ten(std::string_view after) {
  const std::string_view sign = without_blanks(after);
  std::string_view rest;
  for (const std::string_view times :
       {std::string_view("x"), std::string_view("X"), std::string_view("*"), kTimes, kMiddleDot,
        kDotOperator, kBullet}) {
    if (begins(sign, times)) rest = without_blanks(sign.substr(times.size()));
  }
  if (!begins(rest, "10")) return false;
  rest.remove_prefix(2);
  return begins(rest, "^") || begins(rest, "**") || is_raised(rest);
}

// "^20", "**20", "^-3", " ^ 20", but not " **20**" of Markdown
bool is_exponentiation(std::string_view after) {
  const std::string_view sign = without_blanks(after);
  const size_t length = begins(sign, "^") ? 1 : begins(sign, "**") ? 2 : 0;
  if (length == 0) return false;
  const std::string_view rest = without_blanks(sign.substr(length));
  const bool apart = sign.size() < after.size();
  if (apart != (rest.size() < sign.size() - length)) return false;
  return is_digit(at(rest, sign_length(rest)));
}

// The same of what stands before a value: "2^", "2 ** "
bool is_raised_to(std::string_view before) {
  const std::string_view sign = without_blanks_at_end(before);
  const size_t length = ends(sign, "^") ? 1 : ends(sign, "**") ? 2 : 0;
  if (length == 0) return false;
  const std::string_view base = sign.substr(0, sign.size() - length);
  const std::string_view number = without_blanks_at_end(base);
  const bool apart = sign.size() < before.size();
  return apart == (number.size() < base.size()) && is_digit(from_end(number, 0));
}

// The end of the parameters of a terminal's sequence, which its last letter follows.
size_t end_of_parameters(std::string_view text, size_t from) {
  while (from < text.size() && text[from] >= ' ' && text[from] <= '?') ++from;
  return from;
}

// The text as a terminal shows it: without sequences for colours and modes and without links. A
// sequence that moves the cursor or erases something divides what stands around it.
std::string as_shown(std::string_view text) {
  std::string shown;
  for (size_t i = 0; i < text.size();) {
    const bool escape = text[i] == '\x1b';
    if (!escape && text.substr(i, 2) != "\xc2\x9b") {
      shown += text[i++];
      continue;
    }
    const char kind = escape ? at(text, i + 1) : '[';
    i += 2;
    if (kind == '[') {
      i = end_of_parameters(text, i);
      if (!is_in("mhl", at(text, i))) shown += ' ';
      ++i;
    } else if (kind == ']') {  // to BEL or ESC and a backslash
      const size_t end = text.find_first_of("\a\x1b", i);
      i = end == std::string_view::npos ? text.size() : end + (text[end] == '\a' ? 1 : 2);
    } else if (is_in("()*+#%", kind)) {  // a set of characters
      ++i;
    }
  }
  return shown;
}

// Letters behind a number: a unit, unless another number goes on in the same word ("m30s").
bool is_compound(std::string_view after) {
  if (after.front() == 'x' || after.front() == 'X') return false;  // 8xH100, 1024x768
  size_t end = 0;
  while (is_letter(at(after, end))) ++end;
  if (!is_digit(at(after, end))) return false;
  const bool power = after[end] == '2' || after[end] == '3';  // m2, cm3
  return !power || is_name_char(at(after, end + 1)) || at(after, end + 1) == '.';
}

// Groups of three digits behind a separator, as ",234,567".
bool has_groups(std::string_view value, std::string_view after, std::string_view separator) {
  const std::string_view plain = without_sign(value);
  if (!is_whole(value) || plain.size() > 3 || plain.front() == '0') return false;
  size_t end = 0;
  while (begins(after.substr(end), separator) && digits(after, end + separator.size()) == 3)
    end += separator.size() + 3;
  const bool more =
      begins(after.substr(end), separator) && is_digit(at(after, end + separator.size()));
  return end > 0 && !more && !is_digit(at(after, end));
}

// "1.234" and "12.345.678": before a decimal comma these are whole numbers.
bool has_groups_of_points(std::string_view number) {
  const size_t first = digits(number);
  return first < number.size() && has_groups(number.substr(0, first), number.substr(first), ".");
}

// A decimal comma ("3" of "3,14", "1.234" of "1.234,56") or groups, but not the first one of a
// list.
bool has_comma(std::string_view before, std::string_view value, std::string_view after) {
  if (is_in(",([{", from_end(before, 0))) return false;
  if (has_groups(value, after, ",")) return true;
  const size_t end = 1 + digits(after, 1);
  const bool more = is_in(",.", at(after, end)) && is_digit(at(after, end + 1));
  return (is_whole(value) || has_groups_of_points(without_sign(value))) && end > 1 && !more;
}

// "0" of "0:12.5"
bool is_clock(std::string_view value, std::string_view after) {
  return is_whole(value) && value.size() <= 3 && digits(after, 1) == 2 && at(after, 1) < '6' &&
         !is_letter(at(after, 3));
}

// "1" of "1-02:03:04": days and a clock, as Slurm prints durations
bool is_days(std::string_view value, std::string_view after) {
  return is_whole(value) && digits(after, 1) == 2 && at(after, 1) < '3' && at(after, 3) == ':' &&
         digits(after, 4) == 2 && at(after, 4) < '6';
}

bool has_prefix(std::string_view value, std::string_view after) {
  if (!is_zero(value)) return false;
  const char c = at(after, 1);
  switch (after.front()) {
    case 'x':
    case 'X':
      return is_hex_digit(c);
    case 'b':
    case 'B':
      return c == '0' || c == '1';
    case 'o':
    case 'O':
      return c >= '0' && c <= '7';
    default:
      return false;
  }
}

bool goes_on_beyond_ascii(std::string_view value, std::string_view after) {
  const bool groups = std::ranges::any_of(kBetweenGroups, [&](std::string_view between) {
    return begins(after, between) && has_groups(value, after, between);
  });
  return groups || is_raised(after) || is_fraction(after);
}

// Whether the number goes on behind the value.
bool goes_on(std::string_view before, std::string_view value, std::string_view after) {
  const char c = after.front();
  if (is_digit(c) || is_times_power_of_ten(after) || is_exponentiation(after)) return true;
  if (is_letter(c)) {
    if (has_prefix(value, after)) return true;
    if (is_in(kExponents, c) && is_exponent(after)) return true;
    return is_compound(after);
  }
  const bool point = value.find('.') != std::string_view::npos;
  switch (c) {
    case '.':
      return is_digit(at(after, 1)) || at(after, 1) == '#' ||  // 1.#INF
             (!point && is_in(kExponents, at(after, 1)) && is_exponent(after.substr(1)) &&
              (sign_length(after.substr(2)) > 0 || is_digit(at(after, 2))));
    case '+':
    case '-':  // 1.0-100 of Fortran
      if (!point) return c == '-' && is_days(value, after);
      return digits(after, 1) == 3 && !is_name_char(at(after, 4)) &&
             !(at(after, 4) == '.' && is_digit(at(after, 5)));
    case ',':
      return has_comma(before, value, after);
    case '_':
      return has_groups(value, after, "_");
    case '\'':
      return has_groups(value, after, "'");
    case ':':
      return is_clock(value, after);
    case '#':  // behind "1."
      return value.back() == '.' && is_letter(at(after, 1));
    default:
      return static_cast<unsigned char>(c) >= 128 && goes_on_beyond_ascii(value, after);
  }
}

// Whether groups of three digits go on with the value, as in "1,234".
bool ends_groups(std::string_view before, std::string_view value, std::string_view separator) {
  if (digits(value) != 3) return false;
  size_t end = separator.size();
  size_t count = digits_from_end(before, end);
  while (count == 3 && ends(before.substr(0, before.size() - end - 3), separator)) {
    end += 3 + separator.size();
    count = digits_from_end(before, end);
  }
  const char first = from_end(before, end + count - 1);
  const char more = from_end(before, end + count);
  return count > 0 && count <= 3 && first != '0' && !is_name_char(more) && !is_in(",.'([{", more);
}

// Whether it is what follows a decimal comma.
bool ends_decimals(std::string_view before, std::string_view value, std::string_view after) {
  size_t count = digits_from_end(before, 1);
  const bool list = is_in(",.", at(after, 0)) && is_digit(at(after, 1));
  if (count == 0 || digits(value) != value.size() || list) return false;
  size_t begin = 1 + count;
  while (from_end(before, begin) == '.') {
    count = digits_from_end(before, begin + 1);
    begin += 1 + count;
    if (count == 0) return false;
  }
  const std::string_view whole = before.substr(before.size() - begin, begin - 1);
  const bool points = whole.find('.') != std::string_view::npos;
  return (!points || has_groups_of_points(whole)) && !is_in(",.([{", from_end(before, begin));
}

// Whether it is the exponent of a number before it: "1e+", "1.0-" of Fortran.
bool is_signed_exponent(std::string_view before, std::string_view value, std::string_view after) {
  const char c = from_end(before, 1);
  if (is_in(kExponents, c)) return is_digit(from_end(before, 2)) || from_end(before, 2) == '.';
  const size_t decimals = digits_from_end(before, 1);
  return is_whole(value) && value.size() == 3 && from_end(before, 1 + decimals) == '.' &&
         is_digit(from_end(before, 2 + decimals)) && !is_name_char(at(after, 0)) &&
         !(at(after, 0) == '.' && is_digit(at(after, 1)));
}

// Letters before a number: a name, unless a number stands before them in the same word ("1m").
bool ends_compound(std::string_view before) {
  size_t end = 0;
  while (is_letter(from_end(before, end))) ++end;
  if (!is_digit(from_end(before, end))) return false;
  const char first = from_end(before, end - 1);
  if (first == 'x' || first == 'X') {
    const bool hexadecimal =
        end == 1 && from_end(before, 1) == '0' && !is_digit(from_end(before, 2));
    return hexadecimal;
  }
  return true;
}

// A sign is one only where no number and no word stands before it.
bool is_lost_sign(std::string_view before) {
  const char c = from_end(before, 1);
  return c == '\0' || is_in(" \t\r\n=:(,[<>|*/", c);
}

// The character that the text begins with, of UTF-8; 0 if it is none.
uint32_t first_character(std::string_view text) {
  const auto byte = [&](size_t i) -> uint32_t { return static_cast<unsigned char>(at(text, i)); };
  const auto more = [&](size_t i) { return byte(i) & 0x3FU; };
  const uint32_t first = byte(0);
  if (first < 0x80) return first;
  if (first < 0xC0) return 0;
  if (first < 0xE0) return (first & 0x1FU) << 6U | more(1);
  if (first < 0xF0) return (first & 0xFU) << 12U | more(1) << 6U | more(2);
  return (first & 7U) << 18U | more(1) << 12U | more(2) << 6U | more(3);
}

// Whether it is a letter, digit or underscore. Beyond ASCII, the blocks of the scripts of today
// count, without what stands between their words.
bool is_word_character(uint32_t c) {
  if (c < 0x80) return is_name_char(static_cast<char>(c));
  struct Block {
    uint32_t first, last;
  };
  static constexpr std::array<Block, 23> kBlocks = {
      {{0xAA, 0xAA},     {0xB5, 0xB5},     {0xBA, 0xBA},     {0xC0, 0xD6},     {0xD8, 0xF6},
       {0xF8, 0x2C1},    {0x300, 0x374},   {0x376, 0x37D},   {0x37F, 0x386},   {0x388, 0x559},
       {0x561, 0x587},   {0x5D0, 0x5EA},   {0x620, 0x669},   {0x671, 0x6D3},   {0x904, 0x963},
       {0x966, 0xE4E},   {0x10A0, 0x10FA}, {0x1E00, 0x1FFC}, {0x3041, 0x309F}, {0x30A1, 0x30FA},
       {0x3400, 0x9FFF}, {0xAC00, 0xD7A3}, {0xFF10, 0xFF19}}};
  return std::ranges::any_of(
      kBlocks, [&](const Block& block) { return c >= block.first && c <= block.last; });
}
bool begins_word(std::string_view text) {
  return is_word_character(first_character(text));
}
bool ends_word(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) --begin;
  return is_word_character(first_character(text.substr(begin)));
}

// Whether the number has begun before the value.
bool has_begun(std::string_view before, std::string_view value, std::string_view after) {
  const char c = from_end(before, 0);
  const char next = from_end(before, 1);
  if (is_raised_to(before)) return true;
  if (is_sign(value.front())) {
    if (is_digit(c) || (c == '.' && is_digit(next))) return true;
    return is_in(kExponents, c) && (is_digit(next) || next == '.');
  }
  if (is_digit(c)) return true;
  if (is_letter(c)) return ends_compound(before);
  switch (c) {
    case '.':
      return is_digit(value.front()) &&
             (is_digit(next) || next == '\0' || is_in(" \t\r\n=:,(+-*<>|", next));
    case ',':
      if (ends_decimals(before, value, after)) return true;
      break;
    case ':':
      return is_digit(next) && digits(value) == 2 && value.front() < '6';
    case '+':
      return is_signed_exponent(before, value, after);
    case '-':
      return is_signed_exponent(before, value, after) || is_lost_sign(before);
    default:
      break;
  }
  return ends(before, kMinus) || std::ranges::any_of(kBetweenGroups, [&](std::string_view between) {
           return ends(before, between) && ends_groups(before, value, between);
         });
}

}  // namespace

bool is_cut(std::string_view text, std::string_view value, const GroupEdges& edges) {
  constexpr size_t kFar = 64;
  const auto from = static_cast<size_t>(value.data() - text.data());
  const size_t to = from + value.size();
  const std::string before =
      as_shown(text.substr(from - std::min(from, kFar), std::min(from, kFar)));
  const std::string after = as_shown(text.substr(to, kFar));
  const bool left = edges.left_open && !before.empty();
  const bool right = edges.right_open && !after.empty();
  if (is_number(value))
    return (right && goes_on(before, value, after)) || (left && has_begun(before, value, after));
  if (edges.literal) return false;
  return (right && ends_word(value) && begins_word(after)) ||
         (left && begins_word(value) && ends_word(before));
}

std::string around(std::string_view text, std::string_view value) {
  constexpr size_t kMost = 24;
  const auto is_space = [](char c) { return is_in(" \t\r\n\f\v", c) || c == '\0'; };
  auto from = static_cast<size_t>(value.data() - text.data());
  size_t to = from + value.size();
  for (size_t i = 0; i < kMost && from > 0 && !is_space(text[from - 1]); ++i) --from;
  for (size_t i = 0; i < kMost && to < text.size() && !is_space(text[to]); ++i) ++to;
  return std::string(text.substr(from, to - from));
}

std::optional<std::string> without_fortran(std::string_view number) {
  std::string plain(number);
  const size_t letter = plain.find_first_of("dDqQ");
  if (letter != std::string::npos) {
    plain[letter] = 'e';
    return plain;
  }
  const size_t sign = plain.find_last_of("+-");
  if (sign == std::string::npos || sign == 0) return std::nullopt;
  const char before = plain[sign - 1];
  if (!is_digit(before) && before != '.') return std::nullopt;
  return plain.insert(sign, 1, 'e');
}

}  // namespace tally
