#include "engine/python/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/base/text.h"

namespace tally {

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

const char* Value::type_name() const {
  if (std::holds_alternative<std::string>(data)) return "str";
  if (std::holds_alternative<double>(data)) return "float";
  return none() ? "NoneType" : "int";
}

namespace {

BigInt as_big(const Value& value) {
  if (const auto* b = std::get_if<BigInt>(&value.data)) return *b;
  return BigInt(static_cast<Int128>(std::get<long long>(value.data)));
}
bool whole(const Value& value) {
  return value.number() && value.data.index() != 3;
}

// The whole number that a text which is a valid number says: "12", "1_000", "1.5e3", "+7.0".
// Nothing if it has a fraction. Infinite and nan texts have no digits.
std::optional<Value> exact_integer(std::string_view text) {
  std::string plain(strip(text));
  plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
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
  if (type == ValueType::floating) return Value{*number};
  return make_integer(text, *number, exact);
}

}  // namespace tally
