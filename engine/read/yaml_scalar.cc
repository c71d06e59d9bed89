// The patterns are those of YAML 1.1's type repository in PyYAML's form; see
// https://yaml.org/type/. They are matched by hand. There are only nine, and a regular-expression
// library would take longer to start than a whole benchmark file takes to read.
#include "engine/read/yaml_scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "engine/base/text.h"
#include "engine/python/value.h"

namespace tally {

namespace {

// Reads a text from left to right. Every take_* returns how much it took.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  bool take(char c) { return take_one_of(std::string_view(&c, 1)); }
  bool take_one_of(std::string_view set) {
    if (rest_.empty() || set.find(rest_[0]) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  size_t take_all(std::string_view set, size_t most = std::string_view::npos) {
    size_t n = std::min(rest_.find_first_not_of(set), rest_.size());
    n = std::min(n, most);
    rest_.remove_prefix(n);
    return n;
  }
  size_t digits(size_t most = std::string_view::npos) { return take_all("0123456789", most); }
  void sign() { take_one_of("+-"); }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// Matches (?::[0-5]?[0-9])+.
bool take_sexagesimal_parts(Cursor& c) {
  size_t parts = 0;
  while (c.take(':')) {
    std::string_view before = c.rest();
    size_t n = c.digits(2);
    if (n == 0 || (n == 2 && before[0] > '5')) return false;
    ++parts;
  }
  return parts > 0;
}

bool is_integer(std::string_view s) {
  Cursor c(s);
  c.sign();
  std::string_view body = c.rest();
  if (body.empty() || !is_digit(body[0])) return false;
  if (body[0] == '0') {
    if (body == "0") return true;
    c.take('0');
    if (c.take('b')) return c.take_all("01_") > 0 && c.done();
    if (c.take('x')) return c.take_all("0123456789abcdefABCDEF_") > 0 && c.done();
    return c.take_all("01234567_") > 0 && c.done();
  }
  c.take_all("0123456789_");
  return c.done() || (take_sexagesimal_parts(c) && c.done());
}

bool take_exponent(Cursor& c) {
  if (!c.take_one_of("eE")) return true;
  return c.take_one_of("+-") && c.digits() > 0;
}

bool is_float(std::string_view s) {
  if (s == ".nan" || s == ".NaN" || s == ".NAN") return true;
  Cursor c(s);
  bool has_sign = c.take_one_of("+-");
  std::string_view body = c.rest();
  if (body == ".inf" || body == ".Inf" || body == ".INF") return true;
  if (body.empty()) return false;
  if (body[0] == '.') {
    c.take('.');
    if (has_sign || c.rest().empty() || !is_digit(c.rest()[0])) return false;
    c.take_all("0123456789_");
    return take_exponent(c) && c.done();
  }
  if (!is_digit(body[0])) return false;
  c.take_all("0123456789_");
  if (c.take('.')) {
    c.take_all("0123456789_");
    return take_exponent(c) && c.done();
  }
  if (!take_sexagesimal_parts(c) || !c.take('.')) return false;
  c.take_all("0123456789_");
  return c.done();
}

struct Timestamp {
  int year = 0, month = 0, day = 0;
  bool has_time = false;
  int hour = 0, minute = 0, second = 0, micro = 0;
  bool has_zone = false;
  int zone_sign = 1, zone_hour = 0, zone_minute = 0;
};

int number(std::string_view digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// Reads a number of `least` to `most` digits.
bool take_number(Cursor& c, size_t least, size_t most, int* value) {
  std::string_view before = c.rest();
  size_t n = c.digits(most);
  if (n < least) return false;
  *value = number(before.substr(0, n));
  return true;
}

bool take_time(Cursor& c, Timestamp* t) {
  if (!take_number(c, 1, 2, &t->hour) || !c.take(':') || !take_number(c, 2, 2, &t->minute) ||
      !c.take(':') || !take_number(c, 2, 2, &t->second)) {
    return false;
  }
  t->has_time = true;
  if (c.take('.')) {
    std::string_view before = c.rest();
    std::string fraction(before.substr(0, c.digits()));
    fraction.resize(6, '0');
    t->micro = number(fraction);
  }
  std::string_view before = c.rest();
  c.take_all(" \t");
  if (c.done()) return before.empty();
  t->has_zone = true;
  if (c.take('Z')) return c.done();
  t->zone_sign = c.rest()[0] == '-' ? -1 : 1;
  if (!c.take_one_of("+-") || !take_number(c, 1, 2, &t->zone_hour)) return false;
  if (c.take(':') && !take_number(c, 2, 2, &t->zone_minute)) return false;
  return c.done();
}

bool read_timestamp(std::string_view s, Timestamp* t) {
  Cursor c(s);
  if (!take_number(c, 4, 4, &t->year) || !c.take('-')) return false;
  std::string_view after_year = c.rest();
  if (!take_number(c, 1, 2, &t->month) || !c.take('-') || !take_number(c, 1, 2, &t->day)) {
    return false;
  }
  if (c.done()) return after_year.size() == 5;  // a date without a time has two digits each
  if (!c.take_one_of("Tt") && c.take_all(" \t") == 0) return false;
  return take_time(c, t);
}

int days_of_month(int year, int month) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return kDays[static_cast<size_t>(month - 1)] + (month == 2 && leap ? 1 : 0);
}

bool valid(const Timestamp& t) {
  return t.year >= 1 && t.month >= 1 && t.month <= 12 && t.day >= 1 &&
         t.day <= days_of_month(t.year, t.month) && t.hour < 24 && t.minute < 60 && t.second < 60 &&
         t.zone_hour < 24 && t.zone_minute < 60;
}

// str() of datetime.date or datetime.datetime.
std::string timestamp_text(const Timestamp& t) {
  std::string text = fmt::format("{:04}-{:02}-{:02}", t.year, t.month, t.day);
  if (!t.has_time) return text;
  text += fmt::format(" {:02}:{:02}:{:02}", t.hour, t.minute, t.second);
  if (t.micro != 0) text += fmt::format(".{:06}", t.micro);
  if (t.has_zone) {
    bool negative = t.zone_sign < 0 && (t.zone_hour != 0 || t.zone_minute != 0);
    text += fmt::format("{}{:02}:{:02}", negative ? '-' : '+', t.zone_hour, t.zone_minute);
  }
  return text;
}

std::string without_underscores(std::string_view s) {
  std::string dense(s);
  std::erase(dense, '_');
  return dense;
}

// A decimal number of any length, like Python's int.
class BigDecimal {
 public:
  void multiply_add(unsigned factor, unsigned addend) {
    uint64_t carry = addend;
    for (uint32_t& limb : limbs_) {
      carry += static_cast<uint64_t>(limb) * factor;
      limb = static_cast<uint32_t>(carry % kBase);
      carry /= kBase;
    }
    if (carry > 0) limbs_.push_back(static_cast<uint32_t>(carry));
  }
  std::string text() const {
    if (limbs_.empty()) return "0";
    std::string digits = std::to_string(limbs_.back());
    for (size_t i = limbs_.size() - 1; i-- > 0;) digits += fmt::format("{:09}", limbs_[i]);
    return digits;
  }

 private:
  static constexpr uint64_t kBase = 1000000000;
  std::vector<uint32_t> limbs_;  // lowest first
};

unsigned digit_value(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  return static_cast<unsigned>((c | 0x20) - 'a' + 10);
}

bool digits_in_base(std::string_view digits, unsigned base, std::string* text) {
  BigDecimal value;
  if (digits.empty()) return false;
  for (char c : digits) {
    bool alphanumeric = is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    if (!alphanumeric || digit_value(c) >= base) return false;
    value.multiply_add(base, digit_value(c));
  }
  *text = value.text();
  return true;
}

bool construct_integer(std::string_view plain, std::string* text) {
  std::string body = without_underscores(plain);
  bool negative = !body.empty() && body[0] == '-';
  if (!body.empty() && (body[0] == '+' || body[0] == '-')) body.erase(0, 1);
  std::string digits;
  bool good = false;
  if (starts_with(body, "0b")) {
    good = digits_in_base(std::string_view(body).substr(2), 2, &digits);
  } else if (starts_with(body, "0x")) {
    good = digits_in_base(std::string_view(body).substr(2), 16, &digits);
  } else if (body.size() > 1 && body[0] == '0') {
    good = digits_in_base(body, 8, &digits);
  } else if (body.find(':') != std::string::npos) {
    BigDecimal value;
    good = true;
    for (const std::string& part : split_strip(body, ":")) {
      std::string ignored;
      good = good && part.size() < 10 && digits_in_base(part, 10, &ignored);
      if (good) value.multiply_add(60, static_cast<unsigned>(number(part)));
    }
    // The value may have any length. The parts may not: more than nine digits are not a time.
    digits = value.text();
  } else {
    good = digits_in_base(body, 10, &digits);
  }
  if (!good) return false;
  *text = (negative && digits != "0" ? "-" : "") + digits;
  return true;
}

bool read_double(const std::string& text, double* value) {
  char* end = nullptr;
  *value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

bool construct_float(std::string_view plain, std::string* text) {
  std::string body = to_lower(without_underscores(plain));
  double sign = 1;
  if (!body.empty() && (body[0] == '+' || body[0] == '-')) {
    if (body[0] == '-') sign = -1;
    body.erase(0, 1);
  }
  double value = 0;
  if (body == ".inf") {
    value = HUGE_VAL;
  } else if (body == ".nan") {
    value = std::nan("");
  } else {
    // 1:02.5 is sixty plus 2.5. A single part is the number itself.
    for (const std::string& part : split_strip(body, ":")) {
      double digit = 0;
      if (part.find_first_not_of("0123456789.e+-") != std::string::npos) return false;
      if (!read_double(part, &digit)) return false;
      value = value * 60 + digit;
    }
  }
  *text = python_repr(sign * value);
  return true;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> set) {
  return contains(set, text);
}

bool is_true(std::string_view s) {
  return is_one_of(s, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"});
}
bool is_false(std::string_view s) {
  return is_one_of(s, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"});
}

}  // namespace

ScalarType resolve_scalar(std::string_view plain) {
  if (is_one_of(plain, {"", "~", "null", "Null", "NULL"})) return ScalarType::null;
  if (plain == "<<") return ScalarType::merge;
  if (plain == "=") return ScalarType::value;
  if (is_true(plain) || is_false(plain)) return ScalarType::boolean;
  if (plain[0] != '+' && plain[0] != '-' && plain[0] != '.' && !is_digit(plain[0])) {
    return ScalarType::text;
  }
  if (is_float(plain)) return ScalarType::floating;
  if (is_integer(plain)) return ScalarType::integer;
  Timestamp t;
  // A date that does not exist (month 13) stays text. PyYAML stops with a Python error there.
  if (read_timestamp(plain, &t) && valid(t)) return ScalarType::timestamp;
  return ScalarType::text;
}

std::string core_scalar(std::string_view plain, ScalarType type, const std::string& text) {
  if (type == ScalarType::boolean) {
    const bool named = (plain[0] | 0x20) == 't' || (plain[0] | 0x20) == 'f';
    return named ? text : std::string(plain);
  }
  if (type == ScalarType::integer) {
    std::string_view digits = plain;
    if (starts_with(digits, "0x")) return text;
    const bool minus = digits[0] == '-';
    if (digits[0] == '+' || minus) digits.remove_prefix(1);
    if (!std::ranges::all_of(digits, is_digit)) return std::string(plain);
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size() - 1));
    return (minus && digits != "0" ? "-" : "") + std::string(digits);
  }
  if (std::string digits; type == ScalarType::text && starts_with(plain, "0o") &&
                          digits_in_base(plain.substr(2), 8, &digits))
    return digits;  // a text in YAML 1.1
  const bool odd = plain.find_first_of("_:") != std::string_view::npos;
  const bool changed = type == ScalarType::timestamp || (type == ScalarType::floating && odd);
  return changed ? std::string(plain) : text;
}

Status construct_scalar(std::string_view plain, ScalarType type, std::string* text) {
  Timestamp t;
  switch (type) {
    case ScalarType::text:
      *text = std::string(plain);
      break;
    case ScalarType::null:
      text->clear();
      break;
    case ScalarType::boolean:
      *text = is_true(plain) ? "True" : "False";
      if (!is_true(plain) && !is_false(plain))
        return Status::error(fmt::format("'{}' is not a boolean", plain));
      break;
    case ScalarType::integer:
      if (!construct_integer(plain, text))
        return Status::error(fmt::format("'{}' is not an integer", plain));
      break;
    case ScalarType::floating:
      if (!construct_float(plain, text))
        return Status::error(fmt::format("'{}' is not a number", plain));
      break;
    case ScalarType::timestamp:
      if (!read_timestamp(plain, &t) || !valid(t))
        return Status::error(fmt::format("'{}' is not a date or time", plain));
      *text = timestamp_text(t);
      break;
    case ScalarType::merge:
    case ScalarType::value:
      return Status::error(
          fmt::format("a bare '{}' has a special meaning in YAML and is not a valid value", plain));
  }
  return Status::ok();
}

}  // namespace tally
