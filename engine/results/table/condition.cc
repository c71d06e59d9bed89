#include "engine/results/table/condition.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/base/text.h"
#include "engine/python/value.h"

namespace tally {
namespace {

using Form = NumericCondition::Form;

struct Sign {
  const char* text;
  Form form;
};
// Longer signs before their beginnings.
constexpr Sign kSigns[] = {{"<=", Form::at_most},
                           {">=", Form::at_least},
                           {"==", Form::equal},
                           {"<", Form::less},
                           {">", Form::more}};

constexpr const char* kPlusMinus = "\xC2\xB1";  // the sign itself: ±

// The position of "+-" or ±, both of which take two bytes.
size_t find_tolerance(const std::string& text) {
  const size_t plus = text.find("+-");
  return plus != std::string::npos ? plus : text.find(kPlusMinus);
}
constexpr size_t kWidth = 2;

std::optional<NumericCondition> tolerance_of(const std::string& text, size_t plus) {
  std::string width(strip(text.substr(plus + kWidth)));
  const bool percent = !width.empty() && width.back() == '%';
  const std::optional<double> middle = finite_float(text.substr(0, plus));
  const std::optional<double> size =
      finite_float(percent ? width.substr(0, width.size() - 1) : std::string_view(width));
  if (!middle || !size) return {};
  const double half = percent ? std::fabs(*middle) * *size / 100 : *size;
  return NumericCondition{Form::tolerance, *middle - half, *middle + half, width};
}

}  // namespace

std::string condition_expression(const std::string& condition) {
  std::string text(strip(condition));
  for (const char* sign : {"<=", ">=", "==", "!=", "<", ">"}) {
    if (starts_with(text, sign)) return "x " + text;
  }
  const size_t range = text.find("..");
  if (range != std::string::npos) {
    return fmt::format("({}) <= x <= ({})", text.substr(0, range), text.substr(range + 2));
  }
  const size_t plus = find_tolerance(text);
  if (plus != std::string::npos) {
    std::string middle(strip(text.substr(0, plus)));
    std::string tolerance(strip(text.substr(plus + kWidth)));
    if (!tolerance.empty() && tolerance.back() == '%') {
      tolerance.pop_back();
      tolerance = fmt::format("abs({}) * ({}) / 100", middle, tolerance);
    }
    return fmt::format("abs(x - ({})) <= ({})", middle, tolerance);
  }
  if (python_float(text)) return "x == " + text;
  return text;
}

std::optional<NumericCondition> numeric_condition(const std::string& condition) {
  const std::string text(strip(condition));
  for (const Sign& sign : kSigns) {
    if (!starts_with(text, sign.text)) continue;
    const std::optional<double> bound = finite_float(text.substr(std::string(sign.text).size()));
    if (!bound) return {};
    return NumericCondition{sign.form, *bound, *bound, {}};
  }
  const size_t range = text.find("..");
  if (range != std::string::npos) {
    const std::optional<double> low = finite_float(text.substr(0, range));
    const std::optional<double> high = finite_float(text.substr(range + 2));
    if (!low || !high) return {};
    return NumericCondition{Form::range, *low, *high, {}};
  }
  const size_t plus = find_tolerance(text);
  if (plus != std::string::npos) return tolerance_of(text, plus);
  if (const std::optional<double> value = finite_float(text))
    return NumericCondition{Form::equal, *value, *value, {}};
  return {};
}

std::vector<std::string> condition_bounds(const std::string& condition) {
  const std::string text(strip(condition));
  const auto part = [&](size_t at, size_t count = std::string::npos) {
    return std::string(strip(std::string_view(text).substr(at, count)));
  };
  for (const char* sign : {"<=", ">=", "==", "!=", "<", ">"}) {
    if (starts_with(text, sign)) return {part(std::string_view(sign).size())};
  }
  const size_t range = text.find("..");
  if (range != std::string::npos) return {part(0, range), part(range + 2)};
  const size_t plus = find_tolerance(text);
  if (plus != std::string::npos) {
    std::string width = part(plus + kWidth);
    if (!width.empty() && width.back() == '%') width = strip(width.substr(0, width.size() - 1));
    return {part(0, plus), width};
  }
  if (python_float(text)) return {text};
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
