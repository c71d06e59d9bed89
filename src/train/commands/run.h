// One training run: set-up, loop, record, exit code.
#pragma once

#include "src/config/config.h"
#include "src/train/run/stop.h"
#include "src/train/run/world.h"

namespace tally::train {

// Trains as `config` says. Log lines go to stdout, messages to stderr. Returns the exit code
// (docs/flags.md). The record, if asked for, is written whatever the outcome. `start`: when the
// program began. Rank 0 prints and writes for all processes.
int run(const Config& config, TimeLimit::Clock::time_point start, World& world);

}  // namespace tally::train
