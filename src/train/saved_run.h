// What a checkpoint says about the run that wrote it, beside this run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/config/config.h"

namespace tally::train {

struct SavedRun {
  std::string precision;          // "" where it is not known
  int64_t padded_vocabulary = 0;  // 0 where it is not known
};

// Of TrainingState::config_json, which any program may have written.
SavedRun saved_run(const std::string& config_json);

// One sentence for each difference that a user should know of; none of them ends the run.
std::vector<std::string> differences(const SavedRun& saved, const Config& config);

// Optimizer states of another padding do not fit. Throws InputError with the flag to set.
void check_padding(const SavedRun& saved, const Config& config);

}  // namespace tally::train
