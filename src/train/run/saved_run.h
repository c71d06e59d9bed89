// The run that wrote a checkpoint, compared with this run.
#pragma once

#include <string>
#include <vector>

#include "src/measure/record.h"

namespace tally::train {

// One sentence for each setting that differs from those of the checkpoint's run and changes what is
// trained. None of them ends the run. `saved`: TrainingState::config_json, which any program may
// have written; what it lacks is not compared. `run` has this run's settings, and the content of
// its data. `resumes`: the training goes on, with its schedule and its data; otherwise the weights
// alone are used.
std::vector<std::string> differences(const std::string& saved, const Record& run, bool resumes);

}  // namespace tally::train
