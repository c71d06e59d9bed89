// Names inside a checkpoint's root folder. Private to checkpoint/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tally::train {

inline constexpr const char* latest_file = "latest_checkpointed_iteration.txt";
std::string directory_name(int64_t iteration);  // "iter_0000010"
std::optional<int64_t> iteration_of(const std::string& directory_name);

}  // namespace tally::train
