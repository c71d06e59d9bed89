// The progress of a training.
#pragma once

#include <cstdint>

namespace tally::train {

struct Progress {
  int64_t iteration = 0;          // steps done, from the very first run on
  int64_t consumed_samples = 0;   // samples of these steps
  int64_t scheduled_samples = 0;  // samples of those whose update was not skipped: see schedule.h
};

}  // namespace tally::train
