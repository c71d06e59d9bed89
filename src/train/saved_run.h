// The run that wrote a checkpoint, compared with this run.
#pragma once

#include <string>
#include <vector>

#include "src/config/config.h"

namespace tally::train {

struct SavedRun {
  std::string precision;  // "" where it is not known
};

// Reads TrainingState::config_json, which any program may have written.
SavedRun saved_run(const std::string& config_json);

// One sentence for each difference that a user should know. None of them ends the run.
std::vector<std::string> differences(const SavedRun& saved, const Config& config);

}  // namespace tally::train
