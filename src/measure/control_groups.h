// The control groups (cgroups) around this process, which limit what it may take.
#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace tally::train {

// Where the files of a controller ("memory", "pids") lie: of this process's group and of those
// around it, of version 1 and 2. `root`: where proc/ and sys/ lie.
std::vector<std::filesystem::path> control_groups(const std::string& root,
                                                  const std::string& controller);

inline constexpr size_t no_number = std::numeric_limits<size_t>::max();
// The number that a file of the system begins with; no_number for "max" and where there is none.
size_t number_in(const std::filesystem::path& file);

}  // namespace tally::train
