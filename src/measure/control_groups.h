// The control groups (cgroups) of this process, which limit its resources.
#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace tally::train {

// Folders of a controller's files ("memory", "pids"): of this process's group and its parents,
// version 1 and 2. `root`: where proc/ and sys/ are.
std::vector<std::filesystem::path> control_groups(const std::string& root,
                                                  const std::string& controller);

inline constexpr size_t no_number = std::numeric_limits<size_t>::max();
// The number at the start of a system file; no_number for "max" and where there is none.
size_t number_in(const std::filesystem::path& file);

}  // namespace tally::train
