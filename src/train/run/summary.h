// The text that a run prints at its start and at its end.
#pragma once

#include <string>

#include "src/measure/record.h"

namespace tally::train {

// Model, device, precision, batch and data; several lines, the last one ended.
std::string start_summary(const Record& record);
// Measurements besides those of the steps, a line each and in front of the last one; often empty.
std::string measurements_summary(const Record& record);
// One line: steps, tokens/s and time a step after the warm-up, as median and by Megatron-LM's rule,
// loss, memory, model FLOPs utilisation.
std::string end_summary(const Record& record);

}  // namespace tally::train
