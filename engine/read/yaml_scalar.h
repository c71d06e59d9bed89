// Converts a plain YAML scalar as JUBE does: PyYAML's YAML 1.1 types, then Python's str(). JUBE
// files rely on it: `yes` is True, 007 is 7, 1_000 is 1000, 12:30:00 is 45000.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace tally {

enum class ScalarType { text, null, boolean, integer, floating, timestamp, merge, value };

// The type that PyYAML's resolver gives a plain (unquoted, untagged) scalar.
ScalarType resolve_scalar(std::string_view plain);

// Python's str() of the scalar as `type`; null is "". An error: the scalar cannot have that
// type (an explicit !!int on "abc"; 0b_).
Status construct_scalar(std::string_view plain, ScalarType type, std::string* text);

// The number, boolean or time of a plain scalar in YAML 1.2's core schema, if it has type `type` and
// text `text` in PyYAML. Returns `text` if both have the same meaning.
std::string core_scalar(std::string_view plain, ScalarType type, const std::string& text);

}  // namespace tally
