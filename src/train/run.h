// One training run: set-up, loop, record, exit code.
#pragma once

#include "src/config/config.h"
#include "src/train/stop.h"

namespace tally::train {

// Trains as `config` says. Log lines go to stdout, messages to stderr. Returns the exit code
// (docs/flags.md); the record, when one was asked for, is written whatever the end. `start`: when
// the program began.
int run(const Config& config, TimeLimit::Clock::time_point start);

// The line that every error ends in: "tally-train: error: ..." on stderr.
void print_error(const char* text);

}  // namespace tally::train
