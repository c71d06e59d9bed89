// Python's format specification mini-language, as a column's `format` uses it: "{:.2f}".format(x).
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/python/value.h"

namespace tally {

// Formats `value` as Python's format(value, spec), for str, int of any size and float. The error is
// the message of the exception that Python raises.
Status python_format(const Value& value, std::string_view spec, std::string* out);

// Formats a table cell. As in JUBE, the value is first converted to an int if the spec holds one of
// "dbcoxX", or else to a float if it holds one of "eEfFgG". With `exact`, an int conversion
// that would lose a fraction is an error.
Status format_cell(const Value& value, std::string_view spec, bool exact, std::string* out);

}  // namespace tally
