// The disturbance that made a measurement on this machine slower than it should be.
#pragma once

#include "engine/base/rare_text.h"

namespace tally {

struct Disturbance {
  double cores = 0;     // that other programs used on average; 0: not enough to matter
  RareText gpu_users;   // "GPU 0: process 4711 (python3)": other programs on the same GPUs
  RareText throttling;  // "GPU 0: thermal slowdown"
  bool busy() const { return cores > 0 || !gpu_users.empty(); }
  bool throttled() const { return !throttling.empty(); }
  bool any() const { return busy() || throttled(); }
};

}  // namespace tally
