#include "engine/python/python_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "engine/base/text.h"

namespace tally {
namespace {

struct Spec {
  std::string fill = " ";
  char align = '\0';
  char sign = '-';
  bool no_negative_zero = false;
  bool alternate = false;
  long width = -1;
  char grouping = '\0';
  long precision = -1;
  char type = '\0';
  bool zero = false;
};

bool is_align(char c) {
  return c == '<' || c == '>' || c == '=' || c == '^';
}
constexpr long kMostWidth = 1'000'000;

size_t code_point_length(char lead) {
  auto c = static_cast<unsigned char>(lead);
  if (c < 0x80) return 1;
  if (c >= 0xF0) return 4;
  return c >= 0xE0 ? 3 : 2;
}

class SpecReader {
 public:
  explicit SpecReader(std::string_view text) : text_(text) {}

  Status read(Spec* spec) {
    read_alignment(spec);
    if (next("+- ")) spec->sign = text_[at_++];
    if (next("z")) spec->no_negative_zero = take();
    if (next("#")) spec->alternate = take();
    if (next("0")) spec->zero = take();
    if (spec->zero && !explicit_fill_) spec->fill.assign(1, '0');
    TRY(number(&spec->width));
    if (next(",_")) spec->grouping = text_[at_++];
    if (next(",_")) {
      return Status::error(spec->grouping == text_[at_]
                               ? fmt::format("Cannot specify both '{0}' and '{0}'.", text_[at_])
                               : "Cannot specify both ',' and '_'.");
    }
    if (next(".")) {
      ++at_;
      TRY(number(&spec->precision));
      if (spec->precision < 0) {
        return Status::error("Format specifier missing precision");
      }
    }
    if (at_ + 1 < text_.size()) {
      return Status::error("Invalid format specifier");
    }
    if (at_ < text_.size()) spec->type = text_[at_];
    return Status::ok();
  }

 private:
  bool next(std::string_view any) const {
    return at_ < text_.size() && any.find(text_[at_]) != std::string_view::npos;
  }
  bool take() {
    ++at_;
    return true;
  }
  void read_alignment(Spec* spec) {
    if (text_.empty()) return;
    size_t first = std::min(code_point_length(text_[0]), text_.size());
    if (first < text_.size() && is_align(text_[first])) {
      spec->fill = text_.substr(0, first);
      spec->align = text_[first];
      explicit_fill_ = true;
      at_ = first + 1;
    } else if (is_align(text_[0])) {
      spec->align = text_[0];
      at_ = 1;
    }
  }
  Status number(long* out) {
    long value = 0;
    bool any = false;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
      any = true;
      value = value * 10 + (text_[at_] - '0');
      if (value > kMostWidth) {
        return Status::error("Too many decimal digits in format string");
      }
    }
    if (any) *out = value;
    return Status::ok();
  }

  std::string_view text_;
  size_t at_ = 0;
  bool explicit_fill_ = false;
};

// The parts of a formatted number: sign or prefix, the digits of the integer part, and the rest.
struct Parts {
  std::string prefix;
  std::string whole;
  std::string rest;
};

std::string repeat(const std::string& fill, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += fill;
  return out;
}

std::string pad(const std::string& body, const Spec& spec, char align) {
  size_t length = code_points(body);
  if (spec.width < 0 || length >= static_cast<size_t>(spec.width)) return body;
  size_t missing = static_cast<size_t>(spec.width) - length;
  if (align == '<') return body + repeat(spec.fill, missing);
  if (align == '^') {
    return repeat(spec.fill, missing / 2) + body + repeat(spec.fill, missing - missing / 2);
  }
  return repeat(spec.fill, missing) + body;
}

// Puts separators between groups of digits. Pads with leading zeros up to `least` characters.
std::string group_digits(const std::string& digits, char separator, size_t group, size_t least) {
  std::string reversed;
  size_t in_group = 0;
  for (size_t i = 0; i < digits.size() || reversed.size() < least; ++i) {
    if (in_group == group) {
      reversed += separator;
      in_group = 0;
      // A separator may complete the width, but the number may not start with one.
    }
    reversed += i < digits.size() ? digits[digits.size() - 1 - i] : '0';
    ++in_group;
  }
  return {reversed.rbegin(), reversed.rend()};
}

std::string assemble(Parts parts, const Spec& spec, size_t group) {
  char align = spec.align != '\0' ? spec.align : '>';
  if (spec.zero && spec.align == '\0') align = '=';
  bool grouped = spec.grouping != '\0' && !parts.whole.empty() && is_digit(parts.whole.front());
  bool hex = spec.type == 'x' || spec.type == 'X';
  grouped = grouped || (spec.grouping != '\0' && hex);
  if (grouped) {
    size_t least = 0;
    if (align == '=' && spec.fill == "0" && spec.width > 0) {
      size_t other = parts.prefix.size() + parts.rest.size();
      auto width = static_cast<size_t>(spec.width);
      least = width > other ? width - other : 0;
    }
    parts.whole = group_digits(parts.whole, spec.grouping, group, least);
  }
  std::string body = parts.whole + parts.rest;
  if (align != '=') return pad(parts.prefix + body, spec, align);
  size_t length = code_points(parts.prefix) + code_points(body);
  if (spec.width < 0 || length >= static_cast<size_t>(spec.width)) return parts.prefix + body;
  return parts.prefix + repeat(spec.fill, static_cast<size_t>(spec.width) - length) + body;
}

std::string sign_of(bool negative, char sign) {
  if (negative) return "-";
  return sign == '-' ? std::string() : std::string(1, sign);
}

Status format_string(const std::string& text, const Spec& spec, std::string* out) {
  if (spec.type != '\0' && spec.type != 's')
    return Status::error(
        fmt::format("Unknown format code '{}' for object of type 'str'", spec.type));
  if (spec.sign != '-') return Status::error("Sign not allowed in string format specifier");
  if (spec.alternate)
    return Status::error("Alternate form (#) not allowed in string format specifier");
  if (spec.align == '=')
    return Status::error("'=' alignment not allowed in string format specifier");
  if (spec.grouping != '\0')
    return Status::error(fmt::format("Cannot specify '{}' with 's'.", spec.grouping));
  std::string body = text;
  if (spec.precision >= 0) {
    size_t end = 0;
    for (long i = 0; i < spec.precision && end < body.size(); ++i) {
      end += code_point_length(body[end]);
    }
    body.resize(std::min(end, body.size()));
  }
  *out = pad(body, spec, spec.align != '\0' ? spec.align : '<');
  return Status::ok();
}

Status format_float(double value, Spec spec, std::string* out);

Status format_integer(const Value& value, const Spec& spec, std::string* out) {
  constexpr std::string_view kFloat = "eEfFgG%";
  if (spec.type != '\0' && kFloat.find(spec.type) != std::string_view::npos) {
    return format_float(value.as_double(), spec, out);
  }
  constexpr std::string_view kKnown = "bcdnoxX";
  char type = spec.type == '\0' ? 'd' : spec.type;
  if (kKnown.find(type) == std::string_view::npos) {
    return Status::error(fmt::format("Unknown format code '{}' for object of type 'int'", type));
  }
  if (spec.precision >= 0) {
    return Status::error("Precision not allowed in integer format specifier");
  }
  if (spec.no_negative_zero) {
    return Status::error(
        "Negative zero coercion (z) not allowed in format specifier with integer format code");
  }
  bool other_base = type == 'b' || type == 'o' || type == 'x' || type == 'X';
  if (spec.grouping != '\0' &&
      (type == 'c' || type == 'n' || (spec.grouping == ',' && other_base))) {
    return Status::error(fmt::format("Cannot specify '{}' with '{}'.", spec.grouping, type));
  }
  const auto* big = std::get_if<BigInt>(&value.data);
  BigInt number =
      big != nullptr ? *big : BigInt(static_cast<Int128>(std::get<long long>(value.data)));
  if (type == 'c') {
    long long code = 0;
    if (spec.sign != '-')
      return Status::error("Sign not allowed with integer format specifier 'c'");
    if (!number.fits(&code) || code < 0 || code > 0x10FFFF)
      return Status::error("%c arg not in range(0x110000)");
    Parts parts;
    append_utf8(static_cast<uint32_t>(code), parts.rest);
    *out = assemble(parts, spec, 3);
    return Status::ok();
  }
  uint32_t base = type == 'b' ? 2 : type == 'o' ? 8 : other_base ? 16 : 10;
  Parts parts;
  parts.whole = number.str(base);
  if (number.negative()) parts.whole.erase(0, 1);
  parts.prefix = sign_of(number.negative(), spec.sign);
  if (spec.alternate && other_base) parts.prefix += std::string("0") + type;
  if (type == 'X') {
    for (char& c : parts.whole) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  *out = assemble(parts, spec, other_base ? 4 : 3);
  return Status::ok();
}

std::string printf_double(char type, bool alternate, long precision, double value) {
  std::string format = alternate ? "%#.*" : "%.*";
  format += type;
  int length = std::snprintf(nullptr, 0, format.c_str(), static_cast<int>(precision), value);
  std::string text(static_cast<size_t>(length) + 1, '\0');
  std::snprintf(text.data(), text.size(), format.c_str(), static_cast<int>(precision), value);
  text.resize(static_cast<size_t>(length));
  return text;
}

// Python's digits for a finite or non-finite float. The value is not negative; no sign is added.
std::string float_digits(double value, const Spec& spec) {
  char type = spec.type;
  if (type == '\0') {  // like str(); with a precision like 'g', but with a digit after the point
    if (spec.precision < 0) {
      std::string text = python_repr(value);
      return text;
    }
    long precision = std::max(spec.precision, 1L);
    if (!std::isfinite(value)) return python_repr(value);
    std::string general = printf_double('g', spec.alternate, precision, value);
    // 'g' switches to an exponent at 10^precision, and this form at 10^(precision-1).
    std::string exponent = printf_double('e', false, precision - 1, value);
    long power = std::strtol(exponent.c_str() + exponent.find('e') + 1, nullptr, 10);
    if (power >= -4 && power < precision) {
      if (power == precision - 1) {
        std::string mantissa = printf_double('e', false, precision - 1, value);
        size_t e = mantissa.find('e');
        std::string head = mantissa.substr(0, e);
        if (head.find('.') != std::string::npos && !spec.alternate) {
          head.erase(head.find_last_not_of('0') + 1);
          if (head.back() == '.') head.pop_back();
        }
        return head + mantissa.substr(e);
      }
      if (general.find_first_of(".e") == std::string::npos) general += ".0";
    }
    return general;
  }
  long precision = spec.precision < 0 ? 6 : spec.precision;
  if (type == '%') return printf_double('f', spec.alternate, precision, value * 100) + "%";
  if (type == 'n') type = 'g';
  if ((type == 'g' || type == 'G') && precision == 0) precision = 1;
  return printf_double(type, spec.alternate, precision, value);
}

Status format_float(double value, Spec spec, std::string* out) {
  constexpr std::string_view kKnown = "eEfFgGn%";
  if (spec.type != '\0' && kKnown.find(spec.type) == std::string_view::npos) {
    return Status::error(
        fmt::format("Unknown format code '{}' for object of type 'float'", spec.type));
  }
  if (spec.grouping != '\0' && spec.type == 'n') {
    return Status::error(fmt::format("Cannot specify '{}' with 'n'.", spec.grouping));
  }
  Parts parts;
  bool negative = std::signbit(value) && !std::isnan(value);
  std::string digits = float_digits(std::fabs(value), spec);
  if (negative && spec.no_negative_zero &&
      digits.find_first_of("123456789in") == std::string::npos) {
    negative = false;
  }
  size_t whole = 0;
  while (whole < digits.size() && is_digit(digits[whole])) ++whole;
  parts.prefix = sign_of(negative, spec.sign);
  parts.whole = digits.substr(0, whole);
  parts.rest = digits.substr(whole);
  *out = assemble(parts, spec, 3);
  return Status::ok();
}

}  // namespace

Status python_format(const Value& value, std::string_view spec_text, std::string* out) {
  Spec spec;
  TRY(SpecReader(spec_text).read(&spec));
  if (const auto* text = std::get_if<std::string>(&value.data)) {
    return format_string(*text, spec, out);
  }
  if (const auto* number = std::get_if<double>(&value.data)) {
    return format_float(*number, spec, out);
  }
  if (value.none()) {
    if (spec_text.empty()) {
      *out = "None";
      return Status::ok();
    }
    return Status::error("unsupported format string passed to NoneType.__format__");
  }
  return format_integer(value, spec, out);
}

Status format_cell(const Value& value, std::string_view spec, bool exact, std::string* out) {
  constexpr std::string_view kWhole = "dbcoxX";
  constexpr std::string_view kFloat = "eEfFgG";
  bool whole = spec.find_first_of(kWhole) != std::string_view::npos;
  if (!whole && spec.find_first_of(kFloat) == std::string_view::npos) {
    return python_format(value, spec, out);
  }
  std::string text = value.str();
  std::optional<Value> converted =
      make_value(text, whole ? ValueType::integer : ValueType::floating, exact);
  if (!converted) {
    const std::optional<double> number = python_float(text);
    if (number && std::isfinite(*number)) {
      return Status::error(fmt::format("{} is not a whole number", text));
    }
    return Status::error(whole && number
                             ? fmt::format("cannot convert float {} to integer", text)
                             : fmt::format("could not convert string to float: '{}'", text));
  }
  return python_format(*converted, spec, out);
}

}  // namespace tally
