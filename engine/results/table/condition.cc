#include "engine/results/table/condition.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <set>
#include <string_view>

#include "engine/base/text.h"
#include "engine/python/tokens.h"
#include "engine/python/value.h"

namespace tally {
namespace {

using Form = NumericCondition::Form;

struct Sign {
  const char* text;
  Form form;
};
constexpr Sign kSigns[] = {{"", Form::equal},      {"==", Form::equal}, {"<=", Form::at_most},
                           {">=", Form::at_least}, {"<", Form::less},   {">", Form::more}};

constexpr const char* kPlusMinus = "\xC2\xB1";  // the sign itself: ±

// The position of "+-" or ±, both of which take two bytes.
size_t find_tolerance(const std::string& text) {
  const size_t plus = text.find("+-");
  return plus != std::string::npos ? plus : text.find(kPlusMinus);
}

// The text with spaces for what stands in quotes, in brackets and between `if` and `else`. *compares:
// whether a comparison is left, or what joins them.
std::string outermost(const std::string& text, bool* compares) {
  static const std::set<std::string_view> signs = {
      "<", ">", "<=", ">=", "==", "!=", "and", "or", "not", "in", "is"};
  std::string out;
  int depth = 0;
  *compares = false;
  for (const PythonToken& token : tokens_of(text)) {
    const std::string_view one = token.text;
    const bool quoted = token.kind == TokenKind::text;
    const bool begins = quoted ? one.back() == '{' : is_one_of("([{", one.front()) || one == "if";
    const bool ends = quoted ? one.front() == '}' : is_one_of(")]}", one.front()) || one == "else";
    const bool inside = quoted || begins || ends || depth > 0;
    out += inside ? std::string(one.size(), ' ') : std::string(one);
    *compares = *compares || (!inside && signs.contains(one));
    depth += (begins ? 1 : 0) - (ends ? 1 : 0);
  }
  return out;
}

// A condition: a sign with what is on both sides of it. The value stands before a comparison.
struct Parts {
  std::string sign;  // <=, ..., "..", "+-"; empty: a number, or Python, which is the second part
  std::string first, second;
};

Parts parts_of(const std::string& condition) {
  const std::string text(strip(condition));
  for (const char* sign : {"<=", ">=", "==", "!=", "<", ">"}) {
    if (starts_with(text, sign))
      return {sign, {}, std::string(strip(std::string_view(text).substr(std::strlen(sign))))};
  }
  bool compares = false;
  const std::string outer = outermost(text, &compares);
  const size_t range = outer.find(".."), plus = find_tolerance(outer);
  const bool is_range = range != std::string::npos;
  const size_t at = is_range ? range : plus;
  if (compares || at == std::string::npos) return {{}, {}, text};
  return {is_range ? ".." : "+-", std::string(strip(text.substr(0, at))),
          std::string(strip(text.substr(at + 2)))};
}

// Takes the sign off a width of 5%.
bool take_percent(std::string* width) {
  if (width->empty() || width->back() != '%') return false;
  *width = strip(width->substr(0, width->size() - 1));
  return true;
}

std::optional<NumericCondition> tolerance_of(const Parts& parts) {
  std::string width = parts.second;
  const bool percent = take_percent(&width);
  const std::optional<double> middle = finite_float(parts.first), size = finite_float(width);
  if (!middle || !size) return {};
  const double half = percent ? std::fabs(*middle) * *size / 100 : *size;
  return NumericCondition{Form::tolerance, *middle - half, *middle + half, parts.second};
}

}  // namespace

std::string condition_expression(const std::string& condition) {
  const Parts parts = parts_of(condition);
  if (parts.sign == "..") return fmt::format("({}) <= x <= ({})", parts.first, parts.second);
  if (parts.sign == "+-") {
    std::string width = parts.second;
    if (take_percent(&width)) width = fmt::format("abs({}) * ({}) / 100", parts.first, width);
    return fmt::format("abs(x - ({})) <= ({})", parts.first, width);
  }
  if (!parts.sign.empty()) return "x " + std::string(strip(condition));
  return python_float(parts.second) ? "x == " + parts.second : parts.second;
}

std::optional<NumericCondition> numeric_condition(const std::string& condition) {
  const Parts parts = parts_of(condition);
  if (parts.sign == "+-") return tolerance_of(parts);
  const std::optional<double> high = finite_float(parts.second);
  if (!high) return {};
  if (parts.sign == "..") {
    const std::optional<double> low = finite_float(parts.first);
    return low ? std::optional(NumericCondition{Form::range, *low, *high, {}}) : std::nullopt;
  }
  for (const Sign& sign : kSigns) {
    if (parts.sign == sign.text) return NumericCondition{sign.form, *high, *high, {}};
  }
  return {};
}

std::vector<std::string> condition_bounds(const std::string& condition) {
  Parts parts = parts_of(condition);
  if (parts.sign == "+-") take_percent(&parts.second);
  if (parts.sign == ".." || parts.sign == "+-") return {parts.first, parts.second};
  if (!parts.sign.empty() || python_float(parts.second)) return {parts.second};
  return {};
}

std::string missed_by(const std::string& condition, double value) {
  const std::optional<NumericCondition> bounds = numeric_condition(condition);
  if (!bounds || !std::isfinite(value)) return {};
  const Form form = bounds->form;
  const bool has_low = form != Form::less && form != Form::at_most;
  const bool has_high = form != Form::more && form != Form::at_least;
  double bound = 0;
  if (has_low && value < bounds->low) {
    bound = bounds->low;
  } else if (has_high && value > bounds->high) {
    bound = bounds->high;
  } else {
    return {};
  }
  const double distance = std::fabs(value - bound);
  if (bound == 0) return fmt::format("{:.3g}", distance);
  return fmt::format("{:.3g} %", 100 * distance / std::fabs(bound));
}

std::string condition_for(const std::string& condition, double low, double high, double tolerance) {
  const std::optional<NumericCondition> old = numeric_condition(condition);
  if (!old || !std::isfinite(low) || !std::isfinite(high)) return {};
  const double least = low - std::fabs(low) * tolerance;
  const double most = high + std::fabs(high) * tolerance;
  switch (old->form) {
    case Form::less:
      return fmt::format("< {:.6g}", most);
    case Form::at_most:
      return fmt::format("<= {:.6g}", most);
    case Form::more:
      return fmt::format("> {:.6g}", least);
    case Form::at_least:
      return fmt::format(">= {:.6g}", least);
    case Form::range:
      return fmt::format("{:.6g} .. {:.6g}", least, most);
    case Form::tolerance:
      return low == high ? fmt::format("{:.6g} +- {}", low, old->width) : std::string();
    case Form::equal:
      break;
  }
  return {};
}

}  // namespace tally
