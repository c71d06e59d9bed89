// The operations of norm.h on each kind of device.
#pragma once

#include "src/ops/norm/norm.h"

namespace tally::train::cpu {
#include "src/ops/norm/backend.inc"
}  // namespace tally::train::cpu

namespace tally::train::cuda {
#include "src/ops/norm/backend.inc"
}  // namespace tally::train::cuda
