// Durations and moments as people and schedulers write them.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace tally {

// Reads a duration in seconds ("90", "1.5"), with a unit ("90s", "10m", "2h", "1d"), or in Slurm's
// forms (MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS). Returns seconds, or nothing when the text has
// none of these forms or names more than a thousand years.
std::optional<double> parse_duration(const std::string& text);

// A moment as people of this host's time zone write it: "2026-11-29 17:04:59", with `between` in
// place of the blank. `seconds` since 1970.
std::string local_time(std::time_t seconds, char between = ' ');

// The seconds of a unit in which a program prints a time: ns, us (also with a mu), ms, s, min and h.
// A value without a unit is in seconds. No other unit is one of time.
std::optional<double> seconds_of_unit(std::string_view unit);

}  // namespace tally
