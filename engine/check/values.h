// Reading the values of keys.
#pragma once

#include <string>
#include <string_view>

namespace tally {

// true, yes, on, 1 and false, no, off, 0 in any case. False when it is neither.
bool parse_boolean(std::string_view text, bool* value);
bool boolean_or(std::string_view text, bool otherwise);

// A whole number not below 0, or a text with a $parameter, which is known only later.
bool is_number_or_parameter(std::string_view text);

// Seconds, as 90, 90s, 10m, 2h, 1d, or Slurm's [DD-]HH:MM:SS and MM:SS; or a text with a
// $parameter.
bool is_duration_or_parameter(std::string_view text);

// Letters, digits and underscore, no digit first; letters of any script, as Python's identifiers.
bool is_identifier(std::string_view text);

}  // namespace tally
