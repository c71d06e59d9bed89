#include "engine/python/guarded_literal.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "engine/base/text.h"
#include "engine/python/tokens.h"
#include "engine/python/value.h"

namespace tally {

bool says_flag(std::string_view text) {
  static const std::set<std::string> flags = {"true", "false", "yes", "no", "on", "off"};
  return flags.contains(to_lower(text));
}

namespace {

// Python's 0x1F, 0o17 and 0b11, in either case, with a sign and underscores between the digits.
std::optional<BigInt> prefixed_integer(std::string_view text) {
  constexpr size_t kMost = 1000;  // digits: longer texts are no numbers that a rule compares
  const bool negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
  if (text.size() < 3 || text.size() > kMost || text[0] != '0') return std::nullopt;
  const std::string letters = to_lower(text.substr(1));
  const int base = letters[0] == 'x' ? 16 : letters[0] == 'o' ? 8 : letters[0] == 'b' ? 2 : 0;
  if (base == 0 || letters.back() == '_') return std::nullopt;
  BigInt number;
  for (size_t i = 1; i < letters.size(); ++i) {
    if (letters[i] == '_' && letters[i - 1] != '_') continue;
    const size_t digit = std::string_view("0123456789abcdef").find(letters[i]);
    if (digit >= static_cast<size_t>(base)) return std::nullopt;
    number = number * BigInt(base) + BigInt(static_cast<Int128>(digit));
  }
  return negative ? number * BigInt(-1) : number;
}

}  // namespace

std::optional<Value> number_in(std::string_view text) {
  if (text.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  if (const std::optional<BigInt> whole = prefixed_integer(strip(text)))
    return integer_value(*whole);
  const std::optional<double> number = python_float(text);
  if (!number) return std::nullopt;
  std::optional<Value> value;
  if (text.find_first_of(".eE") == std::string_view::npos)
    value = make_value(text, ValueType::integer, true);
  return value ? value : Value{*number};
}

std::string guarded_literal(std::string_view name, std::string_view text, bool numbers) {
  const std::string plain = python_string(text);
  if (says_flag(text)) return fmt::format("__text__({}, {})", plain, python_string(name));
  const std::optional<Value> value = numbers ? number_in(text) : std::nullopt;
  if (!value) return plain;
  return fmt::format("__text__({}, {}, {})", plain, python_string(name), literal(*value));
}

std::string with_written_numbers(std::string_view expression) {
  std::string out;
  std::string_view before;  // the token that is no space
  for (const PythonToken& token : tokens_of(expression)) {
    // Within f'...' a text in quotes may end it.
    if (token.kind == TokenKind::text && token.text.ends_with('{')) return std::string(expression);
    const std::string_view text = token.text;
    const std::optional<Value> number =
        token.kind == TokenKind::number ? number_in(text) : std::nullopt;
    const bool octal = text.size() > 1 && text[0] == '0' && is_digit(text[1]);  // Python's error
    // +4 and -0 are other texts than 4 and 0.
    const bool plain =
        number && number->str() == text && before != "+" && (before != "-" || text != "0");
    if (token.kind != TokenKind::space) before = text;
    if (!number || octal || plain) {
      out += text;
    } else {
      out += fmt::format("__number__({})", python_string(text));
    }
  }
  return out;
}

}  // namespace tally
