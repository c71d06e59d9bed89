// Durations as people and schedulers write them.
#pragma once

#include <optional>
#include <string>

namespace tally {

// A duration: seconds ("90", "1.5"), with a unit ("90s", "10m", "2h", "1d") or Slurm's forms
// (MM:SS, HH:MM:SS, D-HH:MM:SS). Nothing when it is none of these.
std::optional<double> parse_duration(const std::string& text);

}  // namespace tally
