// `tally-train evaluate`: loss and perplexity of a stored language model on a text; loss, accuracy
// or SQuAD's scores of a stored encoder.
#pragma once

#include "src/config/config.h"
#include "src/train/run/world.h"

namespace tally::train {

// Evaluates as `config` says (Command::evaluate). The result is a line on stdout and, when asked
// for, a JSON record (docs/record.md). Processes divide the samples, and rank 0 reports. Returns
// the exit code.
int evaluate(const Config& config, World& world);

}  // namespace tally::train
