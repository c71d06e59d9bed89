// The operations of swiglu.h on each kind of device.
#pragma once

#include "src/ops/swiglu/swiglu.h"

namespace tally::train::cpu {
#include "src/ops/swiglu/backend.inc"
}  // namespace tally::train::cpu

namespace tally::train::cuda {
#include "src/ops/swiglu/backend.inc"
}  // namespace tally::train::cuda
