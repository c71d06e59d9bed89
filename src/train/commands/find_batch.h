// --find-batch: the largest micro batch with which a training fits its device.
#pragma once

#include "src/config/config.h"
#include "src/train/run/world.h"

namespace tally::train {

// Asks the planner first (src/plan/stage_count.h). On a GPU it then tries: it allocates what a
// run allocates and does its first steps, for the model's answer and its neighbours. On a CPU,
// where memory that is not there ends a process, the model's answer counts, within the memory that
// is available and the limit of the process. Prints a table of the tries and the result, and writes
// them to --record. One process. Returns the exit code: 3 where nothing fits.
int find_batch(const Config& config, World& world);

}  // namespace tally::train
