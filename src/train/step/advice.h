// Advice for a training that went wrong.
#pragma once

#include <string>

#include "src/config/config.h"

namespace tally::train {

// Advice for a run whose loss or gradient is not finite: "lower --lr, ...". It does not name
// what the run does already. `updated`: the weights have changed since the run drew or loaded them.
std::string advice_for_divergence(const Config& config, bool updated);

}  // namespace tally::train
