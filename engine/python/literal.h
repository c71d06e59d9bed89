// Values as texts of Python: written into an expression, and read from what it printed.
#pragma once

#include <string>
#include <string_view>

#include "engine/python/value.h"

namespace tally {

// `text` as a string literal of Python.
std::string python_string(std::string_view text);

// A Python literal of the value.
std::string literal(const Value& value);

// What Python printed, with the type it must have had.
Value typed(const std::string& text);

// Whether Python holds what it printed for true.
bool truth(const std::string& text);

}  // namespace tally
