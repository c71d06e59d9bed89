// state.json of a checkpoint. Private to checkpoint/.
#pragma once

#include <string>

#include "src/checkpoint/checkpoint.h"

namespace tally::train {

std::string state_text(const TrainingState& state);
// Throws std::runtime_error with one sentence.
TrainingState read_state(const std::string& path);

}  // namespace tally::train
