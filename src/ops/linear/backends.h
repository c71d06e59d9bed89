// The operations of linear.h on each kind of device.
#pragma once

#include "src/ops/linear/linear.h"

namespace tally::train::cpu {
#include "src/ops/linear/backend.inc"
}  // namespace tally::train::cpu

namespace tally::train::cuda {
#include "src/ops/linear/backend.inc"
}  // namespace tally::train::cuda
