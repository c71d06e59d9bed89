// state.json of a checkpoint. Private to checkpoint/.
#pragma once

#include <string>

#include "src/checkpoint/checkpoint.h"

namespace tally::train {

inline constexpr const char* state_file = "state.json";

std::string state_text(const TrainingState& state);
// Throws std::runtime_error with one sentence.
TrainingState read_state(const std::string& path);
// Whether the text at `path` is that of a checkpoint that was saved with checksums. Version 0.2.0
// and earlier ones saved none. False where it cannot be read.
bool was_saved_with_checksums(const std::string& path);

}  // namespace tally::train
