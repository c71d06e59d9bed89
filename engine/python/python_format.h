// Python's format specification mini-language, as a column's `format` uses it: "{:.2f}".format(x).
#pragma once

#include <string>
#include <string_view>

#include "engine/python/value.h"

namespace tally {

// Formats `value` as Python's format(value, spec) does, for str, int of any size and float. False
// and *error, in Python's words, where Python raises.
bool python_format(const Value& value, std::string_view spec, std::string* out, std::string* error);

// A cell of a table: JUBE makes the value an int first when the spec holds one of "dbcoxX", else a
// float when it holds one of "eEfFgG". `exact`: false for an int that would lose a fraction.
bool format_cell(const Value& value, std::string_view spec, bool exact, std::string* out,
                 std::string* error);

// Code points of UTF-8 text: Python's len().
size_t code_points(std::string_view text);

}  // namespace tally
