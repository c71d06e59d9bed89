// Parses the values of keys.
#pragma once

#include <string_view>

namespace tally {

// Reads true, yes, on, 1 or false, no, off, 0, in any case. Returns false for other texts.
bool parse_boolean(std::string_view text, bool* value);
bool boolean_or(std::string_view text, bool otherwise);

// True for a whole number of at least 0, and for a text with a $parameter, whose value is known
// later.
bool is_number_or_parameter(std::string_view text);

// True for a duration in seconds, as 90, 90s, 10m, 2h or 1d, or in Slurm's forms [DD-]HH:MM:SS and
// MM:SS. Also true for a text with a $parameter.
bool is_duration_or_parameter(std::string_view text);

// True for letters, digits and underscores without a leading digit. Letters may be of any script,
// as in Python's identifiers.
bool is_identifier(std::string_view text);

}  // namespace tally
