// tally-train --rehearse TPxPPxDP[:STAGE]: one rank's share of a layout on one device. Its shard of
// its stage's layers, its micro batches and its schedule run as they would among the other ranks,
// whose messages are not sent (parallel/rehearsal.h). The output: time and rate of a micro
// batch, memory, what would be sent, and the step that follows from it.
#pragma once

#include "src/config/config.h"

namespace tally::train {

// Times in seconds.
struct RehearsedStep {
  double micro_batch = 0;  // forward and backward passes of this rank's layers
  double update = 0;       // the optimizer
  int64_t micro_batches = 0;
  // Passes of a micro batch that the first and the last one wait for while the pipeline fills and
  // drains: p - 1, of chunks that are 1 / v of the rank's layers (arXiv:2104.04473, section 2.2).
  double bubble = 0;
  // Messages: of every micro batch, and once a step.
  double micro_batch_messages = 0, step_messages = 0;

  // The step's time if nothing were sent.
  double without_messages() const {
    return (static_cast<double>(micro_batches) + bubble) * micro_batch + update;
  }
  // The step's time if no message overlapped with other work: an upper bound. The lower bound is
  // without_messages().
  double with_messages() const {
    return without_messages() +
           (static_cast<double>(micro_batches) + bubble) * micro_batch_messages + step_messages;
  }
};

// Returns the exit code. Throws InputError, OutOfMemory, DeviceError.
int rehearse(const Config& config);

}  // namespace tally::train
