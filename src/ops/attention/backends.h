// The operations of attention.h on each kind of device.
#pragma once

#include "src/ops/attention/attention.h"

namespace tally::train::cpu {
#include "src/ops/attention/backend.inc"
}  // namespace tally::train::cpu

namespace tally::train::cuda {
#include "src/ops/attention/backend.inc"
}  // namespace tally::train::cuda
