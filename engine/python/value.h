// Values with their Python types, and their forms in Python's source text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "engine/python/big_int.h"

namespace tally {

// Python's float(text), or none where Python would raise ValueError.
std::optional<double> python_float(std::string_view text);
// The same for a number that is neither infinite nor nan.
std::optional<double> finite_float(std::string_view text);

// The types that a parameter or a pattern can be given: str, int, float.
enum class ValueType { string, integer, floating };

// A value with its Python type. Its printed form depends on the type.
struct Value {
  // monostate: Python's None. BigInt only where long long is too small.
  [[no_unique_address]] std::variant<std::monostate, std::string, long long, double, BigInt> data;
  // The digits behind the point of the text from which a float was read, for printed(). It takes no
  // part in comparisons. -1: unknown, as for every computed number.
  signed char decimals = -1;
  bool none() const { return data.index() == 0; }
  bool number() const { return data.index() >= 2; }
  // Whether it is a float that could not be computed (NaN).
  bool nan() const;
  // The number as a double; 0 if the value is not a number.
  double as_double() const;
  std::string str() const;  // Python's str() of the typed value
  // The value as people expect it in a table: a float with the digits that it was written with, "12"
  // and "0.040" where str() is "12.0" and "0.04". A statistic of such floats that has more digits
  // (the median of 12 and 13) gets one decimal more, or six significant digits. A computed float that
  // is whole has no point.
  std::string printed() const;
  // Python's name of the type: NoneType, str, int, float.
  const char* type_name() const;
};

bool operator==(const Value& a, const Value& b);
// a < b as Python orders numbers and strings. A string comes after every number. None is never
// smaller.
bool less(const Value& a, const Value& b);

// The digits behind the point of a number's text: 3 for "0.040" and "1.234560e+03", 0 for "12" and
// "1e3". -1: more digits than a double keeps, or a number that Python prints with an exponent.
signed char decimals_of(std::string_view text);
// Python's repr() of a float: "1.0", "1e+22", "nan", "-inf".
std::string python_repr(double value);
// Converts `text` to `type`. An int is int(float(text)), with Python's result: above 2^53 the
// double between them changes it. With `exact`, an int has the text's own digits, and the
// conversion fails if it would lose a fraction. Returns nothing if the conversion fails.
std::optional<Value> make_value(std::string_view text, ValueType type, bool exact = false);
// An integer of any size, stored as long long if it fits.
Value integer_value(const BigInt& value);
// The integer that the value holds, which is one.
BigInt as_big(const Value& value);

// Converts values to Python source text, and Python's output back to values.

// A Python string literal for `text`.
std::string python_string(std::string_view text);

// A Python literal for the value.
std::string literal(const Value& value);

// The value, not a str, that Python printed. The type is derived from the text.
Value typed(const std::string& text);

// Whether Python treats the value that it printed as true.
bool truth(const std::string& text);

}  // namespace tally
