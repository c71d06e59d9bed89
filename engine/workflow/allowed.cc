#include "engine/workflow/allowed.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/base/text.h"
#include "engine/python/guarded_literal.h"
#include "engine/python/value.h"

namespace tally {
namespace {

struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open = false;  // the bound itself is not allowed
};

bool is_condition(const std::string& text) {
  return starts_with(text, "<") || starts_with(text, ">") || text.find("..") != std::string::npos;
}

std::optional<Bounds> bounds(const std::string& text) {
  Bounds result;
  const size_t range = text.find("..");
  if (range != std::string::npos) {
    const std::optional<double> low = finite_float(text.substr(0, range));
    const std::optional<double> high = finite_float(text.substr(range + 2));
    if (!low || !high || *low > *high) return {};
    result.low = *low;
    result.high = *high;
    return result;
  }
  result.open = text.size() < 2 || text[1] != '=';
  const std::optional<double> bound = finite_float(text.substr(result.open ? 1 : 2));
  if (!bound) return {};
  (text[0] == '>' ? result.low : result.high) = *bound;
  return result;
}

bool meets(const Bounds& bounds, double value) {
  return bounds.open ? value > bounds.low && value < bounds.high
                     : value >= bounds.low && value <= bounds.high;
}

}  // namespace

std::string allowed_fault(const std::string& allowed) {
  const std::string text(strip(allowed));
  if (text.empty() || !is_condition(text) || bounds(text)) return {};
  return "'" + text + "' is not a condition on a number, as '>= 1' or '1 .. 8' is";
}

std::vector<std::string> allowed_values(const std::string& allowed) {
  const std::string text(strip(allowed));
  if (text.empty() || is_condition(text)) return {};
  return split_strip(text, ",");
}

std::string has_to_be(const std::string& allowed, const std::string& value) {
  std::string text(strip(allowed));
  if (text.empty()) return {};
  if (is_condition(text)) {
    const std::optional<Bounds> condition = bounds(text);
    std::optional<double> number = python_float(value);
    if (!number) {  // 0x10
      if (const std::optional<Value> other = number_in(value)) number = other->as_double();
    }
    if (!condition || (number && meets(*condition, *number))) return {};
    return text;
  }
  const std::vector<std::string> values = allowed_values(text);
  if (contains(values, value)) return {};
  return (values.size() > 1 ? "one of " : "") + join(values, ", ");
}

}  // namespace tally
