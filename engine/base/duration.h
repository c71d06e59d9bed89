// Durations as people and schedulers write them.
#pragma once

#include <optional>
#include <string>

namespace tally {

// Reads a duration in seconds ("90", "1.5"), with a unit ("90s", "10m", "2h", "1d"), or in Slurm's
// forms (MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS). Returns seconds, or nothing when the text has
// none of these forms or names more than a thousand years.
std::optional<double> parse_duration(const std::string& text);

}  // namespace tally
