// The conditions of references: "<= 560", "10 .. 20", "34000 +- 5%".
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tally {

// Turns "<= 560" and the like into a Python expression over x. Any other text is already an
// expression.
std::string condition_expression(const std::string& condition);

// A condition whose bounds are plain numbers.
struct NumericCondition {
  enum class Form { less, at_most, more, at_least, equal, range, tolerance } form;
  double low = 0, high = 0;  // the same number where there is one bound
  std::string width;         // of a tolerance, as written: "5%", "20"
};
std::optional<NumericCondition> numeric_condition(const std::string& condition);

// The texts that the condition compares x with: two of a range and of a tolerance (without its %),
// otherwise one. None if the condition is a Python expression of its own.
std::vector<std::string> condition_bounds(const std::string& condition);

// The amount by which a value misses the nearest bound: "4.8 %", or "0.3" where the bound is 0.
// Empty if the value meets the condition or the condition has no plain numbers.
std::string missed_by(const std::string& condition, double value);

// The condition in the same form that the values from `low` to `high` meet, with a margin of
// `tolerance` (0.05: 5 %). A condition with a tolerance keeps it, and needs a single value. Empty
// if there is no such condition.
std::string condition_for(const std::string& condition, double low, double high, double tolerance);

}  // namespace tally
