#include "engine/python/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include "engine/base/text.h"

namespace tally {

// A run of a million points has many millions of values.
static_assert(sizeof(Value) == sizeof(Value::data));

std::optional<double> python_float(std::string_view text) {
  text = strip(text);
  std::string cleaned;
  if (text.find('_') != std::string_view::npos) {  // allowed between two digits only
    auto digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '_') {
        cleaned += text[i];
      } else if (i == 0 || !digit(i - 1) || !digit(i + 1)) {
        return std::nullopt;
      }
    }
    text = cleaned;
  }
  bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  char first = text.front();
  if (first == '-' || first == '+') return std::nullopt;
  if (first == 'n' || first == 'N') {  // from_chars would also take nan(...)
    if (text.size() != 3) return std::nullopt;
  }
  double value = 0;
  const char* end = text.data() + text.size();
  auto [stop, problem] = std::from_chars(text.data(), end, value, std::chars_format::general);
  if (stop != end) return std::nullopt;
  if (problem == std::errc::result_out_of_range) {
    value = std::strtod(std::string(text).c_str(), nullptr);
  } else if (problem != std::errc()) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

bool Value::nan() const {
  const auto* number = std::get_if<double>(&data);
  return number != nullptr && std::isnan(*number);
}

double Value::as_double() const {
  if (const auto* i = std::get_if<long long>(&data)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&data)) return *d;
  if (const auto* b = std::get_if<BigInt>(&data)) return b->to_double();
  return 0;
}

std::string Value::str() const {
  if (const auto* s = std::get_if<std::string>(&data)) return *s;
  if (const auto* i = std::get_if<long long>(&data)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&data)) return python_repr(*d);
  if (const auto* b = std::get_if<BigInt>(&data)) return b->str();
  return "None";
}

std::string Value::printed() const {
  const auto* number = std::get_if<double>(&data);
  std::string text = str();
  if (number == nullptr || !std::isfinite(*number)) return text;
  if (decimals < 0) return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  text = fmt::format("{:.{}f}", *number, decimals);
  if (python_float(text) == *number) return text;
  constexpr int kDigits = 6;
  const int before_the_point = 1 + static_cast<int>(std::floor(std::log10(std::fabs(*number))));
  const int most = std::max(decimals + 1, kDigits - before_the_point);
  text = python_repr(*number);
  if (text.find('e') != std::string::npos) return fmt::format("{:.{}g}", *number, kDigits);
  const signed char written = decimals_of(text);
  return written >= 0 && written <= most ? text : fmt::format("{:.{}f}", *number, most);
}

const char* Value::type_name() const {
  if (std::holds_alternative<std::string>(data)) return "str";
  if (std::holds_alternative<double>(data)) return "float";
  return none() ? "NoneType" : "int";
}

namespace {

bool whole(const Value& value) {
  return value.number() && value.data.index() != 3;
}

// The whole number that a text which is a valid number says: "12", "1_000", "1.5e3", "+7.0".
// A number with a fraction is none. Infinite and nan texts have no digits.
std::optional<Value> exact_integer(std::string_view text) {
  std::string plain(strip(text));
  std::erase(plain, '_');
  const bool negative = !plain.empty() && plain.front() == '-';
  std::string digits;
  bool fraction = false;
  long scale = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i];
    if (c >= '0' && c <= '9') {
      digits += c;
      if (fraction) --scale;
    } else if (c == '.') {
      fraction = true;
    } else if (c == 'e' || c == 'E') {
      scale += std::strtol(plain.c_str() + i + 1, nullptr, 10);
      break;
    }
  }
  for (; scale < 0 && !digits.empty(); ++scale) {
    if (digits.back() != '0') return std::nullopt;
    digits.pop_back();
  }
  if (scale > 0) digits.append(static_cast<size_t>(scale), '0');
  return integer_value(BigInt::from_digits((negative ? "-" : "") + digits));
}

}  // namespace

bool operator==(const Value& a, const Value& b) {
  if (a.number() && b.number()) {
    if (whole(a) && whole(b)) return as_big(a) == as_big(b);
    return a.as_double() == b.as_double();
  }
  return a.data.index() == b.data.index() && a.data == b.data;
}

bool less(const Value& a, const Value& b) {
  if (a.none() || b.none()) return false;
  if (a.number() != b.number()) return a.number();
  if (!a.number()) return std::get<std::string>(a.data) < std::get<std::string>(b.data);
  if (const auto* i = std::get_if<long long>(&a.data)) {
    if (const auto* j = std::get_if<long long>(&b.data)) return *i < *j;
  }
  if (whole(a) && whole(b)) return as_big(a) < as_big(b);
  return a.as_double() < b.as_double();
}

std::optional<double> finite_float(std::string_view text) {
  const std::optional<double> number = python_float(strip(text));
  return number && std::isfinite(*number) ? number : std::nullopt;
}

BigInt as_big(const Value& value) {
  if (const auto* b = std::get_if<BigInt>(&value.data)) return *b;
  return BigInt(static_cast<Int128>(std::get<long long>(value.data)));
}

signed char decimals_of(std::string_view text) {
  constexpr int kKept = 15;  // decimal digits that a double keeps, whatever they are
  text = strip(text);
  int digits = 0, fraction = 0;
  bool point = false;
  size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point)); ++at) {
    point = point || text[at] == '.';
    if (text[at] == '.') continue;
    if (digits != 0 || text[at] != '0') ++digits;
    if (point) ++fraction;
  }
  if (at < text.size()) {
    constexpr double kLeast = 1e-4, kMost = 1e16;  // Python prints others with an exponent
    const double size = std::fabs(python_float(text).value_or(HUGE_VAL));
    if ((text[at] != 'e' && text[at] != 'E') || size >= kMost || (size < kLeast && size != 0))
      return -1;
    fraction -= std::atoi(std::string(text.substr(at + 1)).c_str());
  }
  return digits > kKept || fraction > kKept ? -1 : static_cast<signed char>(std::max(fraction, 0));
}

std::string python_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

Value integer_value(const BigInt& value) {
  long long small = 0;
  if (value.fits(&small)) return {small};
  return {value};
}

namespace {

std::optional<Value> make_integer(std::string_view text, double number, bool exact) {
  if (!std::isfinite(number)) return std::nullopt;
  if (exact && std::trunc(number) != number) return std::nullopt;
  constexpr double kExact = 9007199254740992;  // 2^53: below it a double is the number itself
  if (exact && std::fabs(number) >= kExact) return exact_integer(text);
  constexpr double kLimit = 9.2e18;
  if (std::fabs(number) < kLimit) return Value{static_cast<long long>(number)};
  return integer_value(BigInt::from_double(number));
}

}  // namespace

std::optional<Value> make_value(std::string_view text, ValueType type, bool exact) {
  std::optional<Value> value(std::in_place);  // GCC 12 warns of a temporary Value with a text
  if (type == ValueType::string) {
    value->data.emplace<std::string>(text);
    return value;
  }
  std::optional<double> number = python_float(text);
  if (!number) return std::nullopt;
  if (type == ValueType::floating) return Value{*number, decimals_of(text)};
  return make_integer(text, *number, exact);
}

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
