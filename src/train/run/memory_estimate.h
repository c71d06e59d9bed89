// The memory that a process of a run needs, from its configuration alone, before anything is
// allocated. Weights, states and activations are those of src/plan/stage_count.h: exact for the
// explicit model on a CPU, which tests compare. Everything else is left out or underestimated, so
// that no run is refused that fits.
#pragma once

#include "src/config/config.h"

namespace tally::train {

// Bytes, as double: sizes that no machine has must not overflow.
struct MemoryEstimate {
  double parameters = 0;   // weights, gradients; when training also the optimizer's state
  double activations = 0;  // one micro batch's, and the scratch of operations
  double batches = 0;      // token ids that are read ahead
  double total() const { return parameters + activations + batches; }
};

MemoryEstimate estimate_memory(const Config& config);

// The bytes that the explicit model of `config` allocates on a CPU, with one set of activations.
double planned_activation_bytes(const Config& config);

// The memory that a process holds before it has made a model: program and libraries.
inline constexpr double process_bytes = 48.0 * (1 << 20);

}  // namespace tally::train
