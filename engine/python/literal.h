// Converts values to Python source text, and Python's output back to values.
#pragma once

#include <string>
#include <string_view>

#include "engine/python/value.h"

namespace tally {

// A Python string literal for `text`.
std::string python_string(std::string_view text);

// A Python literal for the value.
std::string literal(const Value& value);

// The value, not a str, that Python printed. The type is derived from the text.
Value typed(const std::string& text);

// Whether Python treats the value that it printed as true.
bool truth(const std::string& text);

}  // namespace tally
