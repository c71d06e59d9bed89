// The key `allowed` of a parameter: which values it may have.
#pragma once

#include <string>
#include <vector>

namespace tally {

// The fault of the text of `allowed` itself, or "". A text that begins with <, <=, > or >=, or that
// has "..", is a condition on numbers: ">= 1", "1 .. 8". Any other text is a list of values.
std::string allowed_fault(const std::string& allowed);

// The values of a list, or nothing for a condition.
std::vector<std::string> allowed_values(const std::string& allowed);

// Returns "" if `allowed` is empty or the value meets it, otherwise what the value has to be: ">=
// 1", "one of fp32, bf16".
std::string has_to_be(const std::string& allowed, const std::string& value);

}  // namespace tally
