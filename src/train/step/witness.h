// --witness-steps: the losses of a run's first steps by the reference model in float64 on the CPU,
// from the same weights and samples. They witness that the run computes what it should.
#pragma once

#include <cstdint>
#include <vector>

#include "src/config/config.h"
#include "src/train/feed/samples.h"
#include "src/train/run/folders.h"

namespace tally::train {

// The losses of the first config.witness_steps steps from `start`, which resumes nothing; NaN for
// a step without labels. Throws what a training throws.
std::vector<double> witness_losses(const Config& config, const Samples& train,
                                   const StartingPoint& start);

}  // namespace tally::train
