// Names inside a checkpoint's root folder. Private to checkpoint/.
#pragma once

#include <cstdint>
#include <string>

namespace tally::train {

inline constexpr const char* latest_file = "latest_checkpointed_iteration.txt";
std::string directory_name(int64_t iteration);  // "iter_0000010"

}  // namespace tally::train
