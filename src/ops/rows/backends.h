// The operations of rows.h on each kind of device.
#pragma once

#include "src/ops/rows/rows.h"

namespace tally::train::cpu {
#include "src/ops/rows/backend.inc"
}  // namespace tally::train::cpu

namespace tally::train::cuda {
#include "src/ops/rows/backend.inc"
}  // namespace tally::train::cuda
