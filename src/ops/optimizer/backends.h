// The operations of optimizer.h on each kind of device.
#pragma once

#include "src/ops/optimizer/optimizer.h"

namespace tally::train::cpu {
#include "src/ops/optimizer/backend.inc"
}  // namespace tally::train::cpu

namespace tally::train::cuda {
#include "src/ops/optimizer/backend.inc"
}  // namespace tally::train::cuda
