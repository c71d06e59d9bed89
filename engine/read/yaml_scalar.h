// What a plain YAML scalar becomes: PyYAML's YAML 1.1 types, then Python's str(). JUBE files rely
// on it: `yes` is True, 007 is 7, 1_000 is 1000, 12:30:00 is 45000.
#pragma once

#include <string>
#include <string_view>

namespace tally {

enum class ScalarType { text, null, boolean, integer, floating, timestamp, merge, value };

// The type PyYAML's resolver gives a plain (unquoted, untagged) scalar.
ScalarType resolve_scalar(std::string_view plain);

// Python's str() of the scalar read as `type`; null is "". Returns false when it cannot be read as
// that type (an explicit !!int on "abc"; 0b_), with the reason in *error.
bool construct_scalar(std::string_view plain, ScalarType type, std::string* text,
                      std::string* error);

// What YAML 1.2's core schema makes of a plain scalar that PyYAML gives the type `type` and the
// text `text`; `text` itself where both mean the same.
std::string core_scalar(std::string_view plain, ScalarType type, const std::string& text);

// Python's repr() of a double, which is also its str(): 1000.0, 1e+22, inf, nan.
std::string python_float(double value);

}  // namespace tally
