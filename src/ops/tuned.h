// The algorithms that autotuning has chosen on a device, as text: ranks exchange it, so that all of
// them run the same algorithms. Two algorithms may round differently.
#pragma once

#include <string>
#include <vector>

#include "src/ops/operation.h"

namespace tally::train {

// The algorithms chosen for the calls made so far: a line each, of its kind, the key of the call,
// and the choice. Empty on a CPU, where nothing is tuned.
inline Operation<std::string(Stream& s)> tuned_algorithms{"tuned_algorithms"};

// Calls with the same keys use these choices from now on, instead of what was or would be found
// here. A choice that this device cannot run is tuned anew at the next call.
inline Operation<void(Stream& s, const std::string& lines)> adopt_algorithms{"adopt_algorithms"};

// Each call's choice by the first rank that has one, from the texts of several ranks.
std::string first_choices(const std::vector<std::string>& ranks);

}  // namespace tally::train
