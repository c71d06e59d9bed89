// Names inside a checkpoint's root folder. Private to checkpoint/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tally::train {

inline constexpr const char* latest_file = "latest_checkpointed_iteration.txt";
std::string directory_name(int64_t iteration);  // "iter_0000010"
std::optional<int64_t> iteration_of(const std::string& directory_name);

// The absolute path of a folder, without ".", ".." and a slash at its end: filename() is its name.
std::filesystem::path normal_path(const std::filesystem::path& folder);

}  // namespace tally::train
